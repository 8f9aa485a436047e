// Packets for the checksum tests: fixed vectors with known answers, and packets built around a
// payload. 10.77.0.1 to 10.77.0.2, fd77::1 to fd77::2, ports 40000 to 9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "core/byte_order.h"
#include "csum/partial.h"
#include "tests/csum/memory.h"
#include "tests/csum/reference.h"

namespace ipoverbs::csum {

inline std::uint8_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  throw std::invalid_argument("not a hexadecimal digit");
}

inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1])));
  }
  return bytes;
}

// UDP over IPv4 and IPv6 whose sum is a computed zero; the field holds the pseudo-header's.
inline constexpr std::string_view kV1 =
    "4500001e00014000401126320a4d00010a4d00029c400009000a14b84ef4";
inline constexpr std::string_view kV1Complete =
    "4500001e00014000401126320a4d00010a4d00029c400009000affff4ef4";
inline constexpr std::string_view kV2 =
    "60000000000a1140fd770000000000000000000000000001fd7700000000000000000000000000029c400009000afb"
    "0d689e";
inline constexpr std::string_view kV2Complete =
    "60000000000a1140fd770000000000000000000000000001fd7700000000000000000000000000029c400009000aff"
    "ff689e";
// A payload of five bytes.
inline constexpr std::string_view kV3 =
    "45000021000140004011262f0a4d00010a4d00029c400009000d14bb68656c6c6f";
inline constexpr std::string_view kV3Complete =
    "45000021000140004011262f0a4d00010a4d00029c400009000d0b1c68656c6c6f";
// TCP behind a destination options header of 8 bytes, as far as its TCP header; 138 bytes of
// payload follow, byte i of which is 3 i + 2.
inline constexpr std::string_view kV7Headers =
    "602abcde00b23c40fd770000000000000000000000000001fd77000000000000000000000000000206000104000000"
    "009c4000090000006400000007501803e8fba20000";
// UDP without a checksum.
inline constexpr std::string_view kV8 =
    "4500002000014000401126300a4d00010a4d00029c4012b5000c000008000000";
// The packet of the vectors with nonsense in virtio's header.
inline constexpr std::string_view kV9 = "4500001c00014000401126340a4d00010a4d00029c40000900080000";

// A TSO super-packet of 2520 bytes behind its IPv4 header, 2500 of them payload, byte i of which is
// 7 i + 3. `seed` is what its checksum field holds.
inline Bytes v4_super_packet(std::uint16_t seed) {
  Bytes packet =
      from_hex("450009ecffff000040065c700a4d00010a4d00029c400009fffffc0000000007509903e8ffff0000");
  store(std::span(packet), 36, Be16(seed));
  for (unsigned i = 0; i < 2500; ++i) packet.push_back(static_cast<std::byte>(7 * i + 3));
  return packet;
}

inline Bytes v7_super_packet() {
  Bytes packet = from_hex(kV7Headers);
  for (unsigned i = 0; i < 150; ++i) packet.push_back(static_cast<std::byte>(3 * i + 2));
  return packet;
}

// An IP packet around a transport header and payload; IPv4's header checksum is right.
inline Bytes ipv4_packet(Protocol protocol, const Bytes& transport, const Bytes& options = {}) {
  Bytes packet = from_hex("4500000000014000400000000a4d00010a4d0002");
  packet.insert(packet.end(), options.begin(), options.end());
  const std::size_t header = packet.size();
  packet.insert(packet.end(), transport.begin(), transport.end());
  const std::span<std::byte> p(packet);
  store(p, 0, static_cast<std::uint8_t>(0x40 + header / 4));
  store(p, 2, Be16(static_cast<std::uint16_t>(packet.size())));
  store(p, 9, static_cast<std::uint8_t>(protocol));
  const std::uint16_t sum = reference::sum(p.first(header)).value();
  store(p, 10, Be16(static_cast<std::uint16_t>(~sum)));
  return packet;
}

// `rest` is everything behind the IPv6 header, `first` the protocol that it begins with.
inline Bytes ipv6_packet(Protocol first, const Bytes& rest) {
  Bytes packet =
      from_hex("6000000000000040fd770000000000000000000000000001fd770000000000000000000000000002");
  packet.insert(packet.end(), rest.begin(), rest.end());
  store(std::span(packet), 4, Be16(static_cast<std::uint16_t>(rest.size())));
  store(std::span(packet), 6, static_cast<std::uint8_t>(first));
  return packet;
}

// A transport header with an empty checksum field, and its payload.
inline Bytes udp(const Bytes& payload) {
  Bytes datagram = from_hex("9c40000900000000");
  datagram.insert(datagram.end(), payload.begin(), payload.end());
  store(std::span(datagram), 4, Be16(static_cast<std::uint16_t>(datagram.size())));
  return datagram;
}
inline Bytes tcp(const Bytes& payload) {
  Bytes segment = from_hex("9c40000900000064000000075018040000000000");
  segment.insert(segment.end(), payload.begin(), payload.end());
  return segment;
}
inline Bytes icmp_echo(const Bytes& payload) {
  Bytes message = from_hex("0800000012340001");
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

// An IPv6 packet in which `headers` stand between the IPv6 header and a UDP datagram; the last of
// them has next header 17.
inline Bytes behind(Protocol first, std::string_view headers) {
  Bytes rest = from_hex(headers);
  const Bytes datagram = udp(random_bytes(77, 41));
  rest.insert(rest.end(), datagram.begin(), datagram.end());
  return ipv6_packet(first, rest);
}

}  // namespace ipoverbs::csum
