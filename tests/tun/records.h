// Records (virtio header and packet) for tests: byte vectors and small builders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tun/virtio_net.h"

namespace ipoverbs::tun {

// A virtio header and the packet behind it.
struct Record {
  VirtioNetHeader header;
  std::vector<std::byte> packet;

  // As it is read from or written to a TUN.
  [[nodiscard]] std::vector<std::byte> bytes() const;
};

[[nodiscard]] std::vector<std::byte> from_hex(std::string_view hex);
// A record whose first ten bytes are the header.
[[nodiscard]] Record record_from_hex(std::string_view hex);

// A super-packet of 2,500 bytes over TCP and IPv4, 10.77.0.1 to 10.77.0.2, in segments of 1,000.
[[nodiscard]] Record tcp4_super_packet();
// 150 bytes in segments of 100 over TCP and IPv6 with 8 bytes of destination options in between,
// fd77::1 to fd77::2.
[[nodiscard]] Record tcp6_super_packet();
// Three datagrams of 100, 100 and 50 bytes over UDP and IPv4, 10.77.0.1 to 10.77.0.2, port 9.
[[nodiscard]] Record udp4_super_packet();
// One UDP datagram with a partial checksum, 10.77.0.1 to 10.77.0.2.
[[nodiscard]] Record udp4_partial();

// An IPv6 packet from fd77::1 to fd77::2 with `next` as its next header and `payload` behind it.
[[nodiscard]] std::vector<std::byte> ipv6_packet(std::uint8_t next,
                                                 std::span<const std::byte> payload);

}  // namespace ipoverbs::tun
