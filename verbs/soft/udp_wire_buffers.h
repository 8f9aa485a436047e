// What UdpWire gives the kernel, allocated once. Private to udp_wire*.cc.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "verbs/soft/udp_wire.h"

namespace ipoverbs::verbs::soft {

struct UdpWire::Outgoing {
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes{};
  };
  // Each segment has headers, pieces and a trailer.
  std::array<iovec, 2 * Burst::kSegments + Burst::kPieces> pieces{};
  std::array<std::array<std::byte, kIcrcSize + 3>, Burst::kSegments> trailers{};
  std::array<mmsghdr, Burst::kSegments> messages{};
  std::array<sockaddr_storage, Burst::kSegments> addresses{};
  std::array<Control, Burst::kSegments> controls{};
  std::array<std::uint8_t, Burst::kSegments> first{};  // segment of each message
  std::array<std::uint8_t, Burst::kSegments> run{};    // segments of each message
  std::size_t count = 0;                               // messages
  std::size_t piece_count = 0;
  std::size_t trailer_count = 0;

  void add_piece(std::span<const std::byte> bytes) noexcept;
};

struct UdpWire::Incoming {
  struct alignas(cmsghdr) Control {
    // UDP_GRO's segment size and the traffic class.
    std::array<std::byte, 2 * CMSG_SPACE(sizeof(int))> bytes{};
  };
  std::vector<std::byte> buffers = std::vector<std::byte>(kBatch * kBuffer);
  std::array<iovec, kBatch> pieces{};
  std::array<mmsghdr, kBatch> messages{};
  std::array<sockaddr_storage, kBatch> addresses{};
  std::array<Control, kBatch> controls{};

  Incoming();
  // Makes a message ready to be filled.
  void prepare(std::size_t i) noexcept;
};

}  // namespace ipoverbs::verbs::soft
