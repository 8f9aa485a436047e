// IP addresses, prefixes and socket addresses as values.
//
// An IpAddress holds IPv4 or IPv6 in network order; it never means "v4-mapped": ::ffff:192.0.2.1 is
// an IPv6 address here. Parsing accepts only the canonical numeric forms that inet_pton(3) accepts.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/strong.h"

namespace ipoverbs {

// The largest IP packet of an interface, in bytes, IP header included (RFC 791, RFC 8200).
using IpMtu = Strong<struct IpMtuTag, std::uint32_t>;

enum class Family : std::uint8_t { v4 = 4, v6 = 6 };

class IpAddress {
 public:
  // 0.0.0.0.
  IpAddress() = default;
  [[nodiscard]] static IpAddress v4(std::array<std::byte, 4> bytes);
  [[nodiscard]] static IpAddress v6(std::array<std::byte, 16> bytes);
  // From 4 or 16 bytes in network order; any other size is a programmer's error.
  [[nodiscard]] static IpAddress from_bytes(std::span<const std::byte> bytes);
  // "192.0.2.1" or "2001:db8::1", without scope. nullopt if it is neither.
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);

  [[nodiscard]] Family family() const { return family_; }
  [[nodiscard]] bool is_v4() const { return family_ == Family::v4; }
  // 4 or 16 bytes in network order.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::span(bytes_).first(is_v4() ? 4 : 16);
  }
  // 32 or 128.
  [[nodiscard]] unsigned bits() const { return is_v4() ? 32 : 128; }
  // Bit `i` counted from the most significant; i < bits().
  [[nodiscard]] bool bit(unsigned i) const {
    return (std::to_integer<unsigned>(bytes_[i / 8]) >> (7 - i % 8) & 1U) != 0;
  }
  [[nodiscard]] bool is_multicast() const;    // 224.0.0.0/4, ff00::/8
  [[nodiscard]] bool is_link_local() const;   // 169.254.0.0/16, fe80::/10
  [[nodiscard]] bool is_unspecified() const;  // 0.0.0.0, ::
  [[nodiscard]] bool is_loopback() const;     // 127.0.0.0/8, ::1
  [[nodiscard]] std::string to_string() const;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  Family family_ = Family::v4;
  std::array<std::byte, 16> bytes_{};  // an IPv4 address fills the first four; the rest is zero
};

// An address and how many of its leading bits count. The host bits are kept as they were given
// (an interface's address is a prefix with host bits); network() clears them.
class Prefix {
 public:
  Prefix() = default;
  // length <= address.bits(), a programmer's error otherwise.
  Prefix(IpAddress address, unsigned length);
  // "10.1.0.0/16", "fd00::/64", or an address alone (/32, /128). nullopt if malformed.
  [[nodiscard]] static std::optional<Prefix> parse(std::string_view text);

  [[nodiscard]] const IpAddress& address() const { return address_; }
  [[nodiscard]] unsigned length() const { return length_; }
  [[nodiscard]] Prefix network() const;
  [[nodiscard]] bool has_host_bits() const { return network() != *this; }
  [[nodiscard]] bool contains(const IpAddress& address) const;
  // Whether the two have an address in common.
  [[nodiscard]] bool overlaps(const Prefix& other) const;
  [[nodiscard]] std::string to_string() const;

  friend auto operator<=>(const Prefix&, const Prefix&) = default;

 private:
  IpAddress address_;
  unsigned length_ = 0;
};

// An address, a port in host order and, for IPv6 link-local addresses, the interface index.
struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;
  std::uint32_t scope = 0;

  [[nodiscard]] sockaddr_storage to_sockaddr() const;
  // nullopt if the family is neither AF_INET nor AF_INET6.
  [[nodiscard]] static std::optional<Endpoint> from_sockaddr(const sockaddr& address);
  // "192.0.2.1:4755" or "[2001:db8::1]:4755".
  [[nodiscard]] std::string to_string() const;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

}  // namespace ipoverbs
