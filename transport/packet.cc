#include "transport/packet.h"

#include "core/byte_order.h"
#include "transport/ip_header.h"

namespace ipoverbs::transport {

namespace {

constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;

bool ipv4_lengths_fit(std::span<const std::byte> p) {
  if (p.size() < kIpv4Header) return false;
  const std::size_t header = ipv4_header_length(p);
  return header >= kIpv4Header && header <= p.size() && load<Be16>(p, 2).value() == p.size();
}

bool ipv6_lengths_fit(std::span<const std::byte> p) {
  return p.size() >= kIpv6Header && load<Be16>(p, 4).value() == p.size() - kIpv6Header;
}

// Mixes the bits of a 32-bit word (the finaliser of MurmurHash3, public domain constants).
std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ x >> 16;
}

// XOR of the words is the same when source and destination change places.
std::uint32_t xor_words(std::span<const std::byte> bytes) {
  std::uint32_t x = 0;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) x ^= load<Be32>(bytes, i).value();
  return x;
}

std::uint32_t port_hash(std::span<const std::byte> p, std::size_t at, std::uint8_t protocol) {
  if ((protocol != kTcp && protocol != kUdp) || at + 4 > p.size()) return protocol;
  return protocol ^
         static_cast<std::uint32_t>(load<Be16>(p, at).value() ^ load<Be16>(p, at + 2).value()) << 8;
}

}  // namespace

std::optional<PacketAddresses> read_addresses(std::span<const std::byte> packet) noexcept {
  if (packet.empty()) return std::nullopt;
  if (ip_version(packet) == 4 && ipv4_lengths_fit(packet)) {
    return PacketAddresses{IpAddress::from_bytes(packet.subspan(12, 4)),
                           IpAddress::from_bytes(packet.subspan(16, 4))};
  }
  if (ip_version(packet) == 6 && ipv6_lengths_fit(packet)) {
    return PacketAddresses{IpAddress::from_bytes(packet.subspan(8, 16)),
                           IpAddress::from_bytes(packet.subspan(24, 16))};
  }
  return std::nullopt;
}

std::uint32_t flow_hash(std::span<const std::byte> packet) noexcept {
  if (ip_version(packet) == 6) {
    const auto protocol = load<std::uint8_t>(packet, 6);
    return mix(xor_words(packet.subspan(8, 32)) ^ port_hash(packet, kIpv6Header, protocol));
  }
  const std::uint32_t addresses = xor_words(packet.subspan(12, 8));
  constexpr std::uint16_t kFragmentMask = 0x3fff;  // more-fragments and offset (RFC 791)
  const bool fragment = (load<Be16>(packet, 6).value() & kFragmentMask) != 0;
  const auto protocol = load<std::uint8_t>(packet, 9);
  if (fragment) return mix(addresses ^ protocol);
  return mix(addresses ^ port_hash(packet, ipv4_header_length(packet), protocol));
}

}  // namespace ipoverbs::transport
