// The 36 bytes that rdma_cm puts in front of the user's private data in a REQ, where the connecting
// and the wanted IP address stand (InfiniBand Architecture vol. 1, annex A11; kernel
// drivers/infiniband/core/cma.c).
//
//   0 version (0) | 1 IP version (4 bits), reserved | 2 source port
//   4 source address (16) | 20 destination address (16); IPv4 in the last four bytes, the rest zero
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/ip.h"
#include "verbs/soft/cm_message.h"

namespace ipoverbs::verbs::soft {

inline constexpr std::size_t kCmaHeaderSize = 36;
static_assert(kCmaHeaderSize + kConnectPrivateData == kReqPrivateData);

struct CmaHeader {
  std::uint16_t source_port = 0;
  IpAddress source;
  IpAddress destination;  // of the same family
  friend bool operator==(const CmaHeader&, const CmaHeader&) = default;
};

// `bytes` are the header's. nullopt: another version, or an IP version that is neither 4 nor 6.
[[nodiscard]] std::optional<CmaHeader> parse_cma_header(
    std::span<const std::byte, kCmaHeaderSize> bytes);
void emit_cma_header(const CmaHeader& header, std::span<std::byte, kCmaHeaderSize> bytes);

}  // namespace ipoverbs::verbs::soft
