// What the transport reads of an IP packet: version, lengths, addresses, and a hash of its flow.
//
// RFC 791 section 3.1, RFC 8200 section 3. Nothing here looks at a checksum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/ip.h"

namespace ipoverbs::transport {

struct PacketAddresses {
  IpAddress source;
  IpAddress destination;
  // Multicast, or 255.255.255.255. A subnet's own broadcast address is as any other: prefixes of
  // peers say nothing of subnets.
  [[nodiscard]] bool is_for_all() const {
    constexpr auto kOnes = std::byte{255};
    const auto bytes = destination.bytes();
    return destination.is_multicast() ||
           (destination.is_v4() &&
            std::ranges::all_of(bytes, [](std::byte b) { return b == kOnes; }));
  }
};

// The addresses of `packet`, or nullopt if it is no IP packet or its length field is not exactly
// its size: version 4 or 6, an IPv4 header length of at least 20 bytes that lies within, total
// length or payload length as received. Data path.
[[nodiscard]] std::optional<PacketAddresses> read_addresses(
    std::span<const std::byte> packet) noexcept;

// A hash of addresses, protocol and, where the first fragment of TCP or UDP shows them, ports;
// equal in both directions of a flow. `packet` has passed read_addresses(). Fragments after the
// first have no ports, so all fragments of IPv4 hash by addresses alone.
[[nodiscard]] std::uint32_t flow_hash(std::span<const std::byte> packet) noexcept;

}  // namespace ipoverbs::transport
