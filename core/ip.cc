#include "core/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "core/byte_order.h"

namespace ipoverbs {

IpAddress IpAddress::v4(std::array<std::byte, 4> bytes) { return from_bytes(bytes); }

IpAddress IpAddress::v6(std::array<std::byte, 16> bytes) { return from_bytes(bytes); }

IpAddress IpAddress::from_bytes(std::span<const std::byte> bytes) {
  assert(bytes.size() == 4 || bytes.size() == 16);
  IpAddress a;
  a.family_ = bytes.size() == 4 ? Family::v4 : Family::v6;
  std::ranges::copy(bytes, a.bytes_.begin());
  return a;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string terminated(text);
  if (terminated.size() != std::strlen(terminated.c_str())) return std::nullopt;
  std::array<std::byte, 16> bytes{};
  if (::inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) {
    return from_bytes(std::span(bytes).first(4));
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return from_bytes(bytes);
  return std::nullopt;
}

bool IpAddress::is_multicast() const {
  return is_v4() ? (bytes_[0] & std::byte{0xf0}) == std::byte{0xe0} : bytes_[0] == std::byte{0xff};
}

bool IpAddress::is_link_local() const {
  if (is_v4()) return bytes_[0] == std::byte{169} && bytes_[1] == std::byte{254};
  return bytes_[0] == std::byte{0xfe} && (bytes_[1] & std::byte{0xc0}) == std::byte{0x80};
}

bool IpAddress::is_unspecified() const {
  return std::ranges::all_of(bytes_, [](std::byte b) { return b == std::byte{0}; });
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes_[0] == std::byte{127};
  return std::all_of(bytes_.begin(), bytes_.end() - 1,
                     [](std::byte b) { return b == std::byte{0}; }) &&
         bytes_[15] == std::byte{1};
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

Prefix::Prefix(IpAddress address, unsigned length) : address_(address), length_(length) {
  assert(length <= address.bits());
}

std::optional<Prefix> Prefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == std::string_view::npos) return Prefix(*address, address->bits());
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (length > address->bits()) return std::nullopt;
  return Prefix(*address, length);
}

Prefix Prefix::network() const {
  std::array<std::byte, 16> bytes{};
  std::ranges::copy(address_.bytes(), bytes.begin());
  for (unsigned i = 0; i < address_.bits() / 8; ++i) {
    const unsigned kept = std::clamp(length_, i * 8, i * 8 + 8) - i * 8;
    bytes[i] &= static_cast<std::byte>(0xff00U >> kept);
  }
  return {IpAddress::from_bytes(std::span(bytes).first(address_.bits() / 8)), length_};
}

bool Prefix::contains(const IpAddress& address) const {
  if (address.family() != address_.family()) return false;
  return Prefix(address, length_).network().address() == network().address();
}

bool Prefix::overlaps(const Prefix& other) const {
  return length_ <= other.length_ ? contains(other.address_) : other.contains(address_);
}

std::string Prefix::to_string() const {
  return fmt::format("{}/{}", address_.to_string(), length_);
}

sockaddr_storage Endpoint::to_sockaddr() const {
  sockaddr_storage storage{};
  const Be16 network_port(port);
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = std::bit_cast<in_port_t>(network_port);
    std::memcpy(&in.sin_addr, address.bytes().data(), 4);
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = std::bit_cast<in_port_t>(network_port);
    std::memcpy(&in6.sin6_addr, address.bytes().data(), 16);
    in6.sin6_scope_id = scope;
    std::memcpy(&storage, &in6, sizeof in6);
  }
  return storage;
}

std::optional<Endpoint> Endpoint::from_sockaddr(const sockaddr& address) {
  Endpoint e;
  Be16 network_port;
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    network_port = std::bit_cast<Be16>(in.sin_port);
    e.address = IpAddress::from_bytes(std::as_bytes(std::span(&in.sin_addr, 1)));
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address, sizeof in6);
    network_port = std::bit_cast<Be16>(in6.sin6_port);
    e.address = IpAddress::from_bytes(std::as_bytes(std::span(&in6.sin6_addr, 1)));
    e.scope = in6.sin6_scope_id;
  } else {
    return std::nullopt;
  }
  e.port = network_port.value();
  return e;
}

std::string Endpoint::to_string() const {
  return address.is_v4() ? fmt::format("{}:{}", address.to_string(), port)
                         : fmt::format("[{}]:{}", address.to_string(), port);
}

}  // namespace ipoverbs
