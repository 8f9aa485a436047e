// Reads captures, to hold the code against what others have put on a wire.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ip.h"

namespace ipoverbs::test {

struct CapturedFrame {
  std::chrono::microseconds time{};  // since the epoch
  std::vector<std::byte> bytes;      // from the Ethernet header on
};

// A pcap file of Ethernet frames, with microseconds, in the byte order of a little-endian machine
// (pcap-savefile(5)). Throws std::runtime_error naming the file when it is anything else or ends
// early, and for a frame that was not captured whole.
[[nodiscard]] std::vector<CapturedFrame> read_pcap(const std::string& path);

struct CapturedDatagram {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t ip_id = 0;             // 0 for IPv6
  std::span<const std::byte> payload;  // lies in the frame
};
// nullopt if the frame is not UDP in IPv4 without options or in IPv6 without extension headers.
[[nodiscard]] std::optional<CapturedDatagram> udp_of(const CapturedFrame& frame);

}  // namespace ipoverbs::test
