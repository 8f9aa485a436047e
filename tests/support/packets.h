// Packets for tests: built whole, with documentation addresses, one field at a time away from the
// good one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/byte_order.h"
#include "core/ip.h"
#include "tun/virtio_net.h"

namespace ipoverbs::support {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

// An IP packet without options, `payload` behind its header; its IPv4 header checksum is zero,
// since the transport looks at none.
inline Bytes ip_packet(const IpAddress& source, const IpAddress& destination, const Bytes& payload,
                       std::uint8_t protocol = 17) {
  const bool v4 = source.is_v4();
  const std::size_t header = v4 ? 20 : 40;
  Bytes packet(header + payload.size());
  const std::span<std::byte> p(packet);
  if (v4) {
    store(p, 0, std::uint8_t{0x45});
    store(p, 2, Be16(static_cast<std::uint16_t>(packet.size())));
    store(p, 8, std::uint8_t{64});
    store(p, 9, protocol);
  } else {
    store(p, 0, std::uint8_t{0x60});
    store(p, 4, Be16(static_cast<std::uint16_t>(payload.size())));
    store(p, 6, protocol);
    store(p, 7, std::uint8_t{64});
  }
  std::ranges::copy(source.bytes(), packet.begin() + (v4 ? 12 : 8));
  std::ranges::copy(destination.bytes(), packet.begin() + (v4 ? 16 : 24));
  std::ranges::copy(payload, packet.begin() + static_cast<std::ptrdiff_t>(header));
  return packet;
}

inline IpAddress address(std::string_view text) { return *IpAddress::parse(text); }

inline Bytes ip_packet(std::string_view source, std::string_view destination, const Bytes& payload,
                       std::uint8_t protocol = 17) {
  return ip_packet(address(source), address(destination), payload, protocol);
}

// As a TUN hands it out: virtio header in front.
inline Bytes with_header(const Bytes& packet, const tun::VirtioNetHeader& header = {}) {
  Bytes record(sizeof header);
  store(std::span(record), 0, header);
  record.insert(record.end(), packet.begin(), packet.end());
  return record;
}

}  // namespace ipoverbs::support
