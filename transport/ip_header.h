// Where an IP header ends (RFC 791 section 3.1, RFC 8200 section 3). For packets whose lengths are
// known to fit: nothing here looks for the end of `packet`.
#pragma once

#include <cstddef>
#include <span>

namespace ipoverbs::transport {

inline constexpr std::size_t kIpv4Header = 20;  // without options
inline constexpr std::size_t kIpv6Header = 40;  // without extension headers

[[nodiscard]] constexpr unsigned ip_version(std::span<const std::byte> packet) noexcept {
  return std::to_integer<unsigned>(packet[0]) >> 4;
}

// Options included. `packet` is of version 4.
[[nodiscard]] constexpr std::size_t ipv4_header_length(std::span<const std::byte> packet) noexcept {
  return (std::to_integer<std::size_t>(packet[0]) & 0x0f) * 4;
}

}  // namespace ipoverbs::transport
