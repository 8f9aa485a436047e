#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "tun/virtio_net.h"

namespace ipoverbs::tun {

namespace {

using Packet = std::span<const std::byte>;

constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kTcpHeader = 20;  // without options
constexpr std::size_t kTcpChecksumOffset = 16;
constexpr std::size_t kUdpChecksumOffset = 6;
constexpr unsigned kMaxExtensionHeaders = 16;
constexpr std::uint16_t kGsoByFrags = 0xffff;  // GSO_BY_FRAGS, include/linux/skbuff.h

// Extension headers beyond those that <netinet/in.h> names (IANA, IPv6 extension header types).
constexpr std::uint8_t kMobility = 135;
constexpr std::uint8_t kHostIdentity = 139;
constexpr std::uint8_t kShim6 = 140;

std::uint8_t byte_at(Packet packet, std::size_t offset) {
  return std::to_integer<std::uint8_t>(packet[offset]);
}

unsigned ip_version(Packet packet) { return byte_at(packet, 0) >> 4U; }

// Bytes of the fixed part of the IP header, 0 if the packet is too short for it or the version is
// unknown. IPv4 options count.
std::size_t ip_header_length(Packet packet) {
  if (packet.empty()) return 0;
  std::size_t length = 0;
  if (ip_version(packet) == 4) {
    length = std::size_t{4} * (byte_at(packet, 0) & 0xfU);
    if (length < 20) return 0;
  } else if (ip_version(packet) == 6) {
    length = kIpv6Header;
  }
  return length <= packet.size() ? length : 0;
}

// The whole packet's length as its IP header tells it.
std::size_t ip_total_length(Packet packet) {
  return ip_version(packet) == 4 ? load<Be16>(packet, 2).value()
                                 : kIpv6Header + load<Be16>(packet, 4).value();
}

TransportHeader find_transport_v4(Packet packet, std::size_t header_length) {
  // RFC 791: three flag bits, the third of which is More Fragments, and 13 bits of offset.
  const unsigned fragment = load<Be16>(packet, 6).value() & 0x3fffU;
  return {.offset = header_length, .protocol = byte_at(packet, 9), .present = fragment == 0};
}

bool is_extension_header(std::uint8_t protocol) {
  switch (protocol) {
    case IPPROTO_HOPOPTS:
    case IPPROTO_ROUTING:
    case IPPROTO_FRAGMENT:
    case IPPROTO_DSTOPTS:
    case IPPROTO_AH:
    case kMobility:
    case kHostIdentity:
    case kShim6:
      return true;
    default:
      return false;
  }
}

// Bytes of the extension header at `offset`, of which at least 8 are within the packet.
std::size_t extension_length(Packet packet, std::uint8_t protocol, std::size_t offset) {
  const std::size_t field = byte_at(packet, offset + 1);
  switch (protocol) {
    case IPPROTO_FRAGMENT:
      return 8;
    case IPPROTO_AH:  // RFC 4302, section 2.2: in words of 4 bytes, less 2
      return (field + 2) * 4;
    default:  // RFC 8200, section 4: in words of 8 bytes, the first not counted
      return (field + 1) * 8;
  }
}

TransportHeader find_transport_v6(Packet packet) {
  TransportHeader at{.offset = kIpv6Header, .protocol = byte_at(packet, 6)};
  for (unsigned i = 0; i <= kMaxExtensionHeaders; ++i) {
    if (!is_extension_header(at.protocol)) {
      at.present = at.protocol != IPPROTO_NONE && at.protocol != IPPROTO_ESP;
      return at;
    }
    if (packet.size() - at.offset < 8) return at;
    const std::size_t length = extension_length(packet, at.protocol, at.offset);
    if (packet.size() - at.offset < length) return at;
    // RFC 8200, section 4.5: 13 bits of offset, two reserved bits, More Fragments.
    const bool fragmented = at.protocol == IPPROTO_FRAGMENT &&
                            (load<Be16>(packet, at.offset + 2).value() & 0xfff9U) != 0;
    at.protocol = byte_at(packet, at.offset);
    at.offset += length;
    if (fragmented) return at;
  }
  return at;
}

// Bytes of the TCP or UDP header at `at`, 0 if it is another protocol, or not all there.
std::size_t transport_header_length(Packet packet, const TransportHeader& at) {
  if (!at.present) return 0;
  const std::size_t rest = packet.size() - at.offset;
  if (at.protocol == IPPROTO_UDP) return rest >= kUdpHeader ? kUdpHeader : 0;
  if (at.protocol != IPPROTO_TCP || rest < kTcpHeader) return 0;
  const std::size_t length = std::size_t{4} * (byte_at(packet, at.offset + 12) >> 4U);
  return length >= kTcpHeader && length <= rest ? length : 0;
}

std::size_t checksum_end(const VirtioNetHeader& header) {
  return std::size_t{header.csum_start.value()} + header.csum_offset.value() + sizeof(Be16);
}

bool needs_checksum(const VirtioNetHeader& header) {
  return (header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0;
}

HeaderCheck check_checksum(const VirtioNetHeader& header, Packet packet, std::size_t ip_header) {
  if (!needs_checksum(header)) return HeaderCheck::Ok;
  if (checksum_end(header) > packet.size()) return HeaderCheck::ChecksumOutside;
  if (header.csum_start.value() < ip_header) return HeaderCheck::ChecksumInIpHeader;
  return HeaderCheck::Ok;
}

// What a GSO type says about the packet that carries it.
struct GsoKind {
  unsigned ip_version = 0;  // 0: either
  std::uint8_t protocol = 0;
  std::size_t checksum_offset = 0;
};

GsoKind gso_kind(std::uint8_t type) {
  switch (type) {
    case VIRTIO_NET_HDR_GSO_TCPV4:
      return {.ip_version = 4, .protocol = IPPROTO_TCP, .checksum_offset = kTcpChecksumOffset};
    case VIRTIO_NET_HDR_GSO_TCPV6:
      return {.ip_version = 6, .protocol = IPPROTO_TCP, .checksum_offset = kTcpChecksumOffset};
    case VIRTIO_NET_HDR_GSO_UDP_L4:
      return {.protocol = IPPROTO_UDP, .checksum_offset = kUdpChecksumOffset};
    default:
      return {};
  }
}

HeaderCheck check_gso_lengths(const VirtioNetHeader& header, Packet packet,
                              const TransportHeader& at, std::size_t header_length) {
  if (ip_total_length(packet) != packet.size()) return HeaderCheck::GsoLengthMismatch;
  if (at.protocol != IPPROTO_UDP) return HeaderCheck::Ok;
  if (load<Be16>(packet, at.offset + 4).value() != packet.size() - at.offset) {
    return HeaderCheck::GsoLengthMismatch;
  }
  const std::size_t payload = packet.size() - at.offset - header_length;
  if (payload > kMaxUdpSegments * header.gso_size.value()) return HeaderCheck::GsoTooManySegments;
  return HeaderCheck::Ok;
}

HeaderCheck check_gso(const VirtioNetHeader& header, Packet packet) {
  const auto type = static_cast<std::uint8_t>(header.gso_type & ~VIRTIO_NET_HDR_GSO_ECN);
  const GsoKind kind = gso_kind(type);
  if (kind.protocol == 0) return HeaderCheck::UnknownGsoType;
  if (type != header.gso_type && kind.protocol != IPPROTO_TCP) {
    return HeaderCheck::GsoUnexpectedEcnBit;
  }
  const std::uint16_t size = header.gso_size.value();
  if (size == 0 || size == kGsoByFrags) return HeaderCheck::GsoBadSize;
  if (!needs_checksum(header)) return HeaderCheck::GsoWithoutChecksum;
  if (kind.ip_version != 0 && kind.ip_version != ip_version(packet)) {
    return HeaderCheck::GsoWrongFamily;
  }
  const TransportHeader at = find_transport(packet);
  if (!at.present || at.protocol != kind.protocol) return HeaderCheck::GsoWrongTransport;
  const std::size_t header_length = transport_header_length(packet, at);
  if (header_length == 0) return HeaderCheck::GsoTruncatedHeader;
  if (header.csum_start.value() != at.offset ||
      header.csum_offset.value() != kind.checksum_offset) {
    return HeaderCheck::GsoWrongChecksum;
  }
  return check_gso_lengths(header, packet, at, header_length);
}

constexpr std::array<std::string_view, kHeaderChecks> kDescriptions{
    "ok",
    "no packet behind the header",
    "packet longer than 65535 bytes",
    "IP version neither 4 nor 6",
    "IP header truncated",
    "unknown flags",
    "unknown GSO type",
    "checksum outside the packet",
    "checksum starts within the IP header",
    "GSO without partial checksum",
    "GSO type of the other IP version",
    "GSO type of another transport protocol",
    "GSO with a checksum elsewhere",
    "GSO with a truncated transport header",
    "GSO with a length that is not the packet's",
    "GSO size unusable",
    "GSO with too many datagrams",
    "ECN bit on a GSO type without TCP",
};
static_assert(static_cast<std::size_t>(HeaderCheck::GsoUnexpectedEcnBit) + 1 == kHeaderChecks);

}  // namespace

std::string_view describe(HeaderCheck check) noexcept {
  return kDescriptions[static_cast<std::size_t>(check)];
}

HeaderCheck check(const VirtioNetHeader& header, std::span<const std::byte> packet) noexcept {
  constexpr std::uint8_t kKnownFlags = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;
  if (packet.empty()) return HeaderCheck::PacketEmpty;
  if (packet.size() > kMaxPacket) return HeaderCheck::PacketTooLong;
  if (ip_version(packet) != 4 && ip_version(packet) != 6) return HeaderCheck::BadIpVersion;
  const std::size_t ip_header = ip_header_length(packet);
  if (ip_header == 0) return HeaderCheck::BadIpHeader;
  if ((header.flags & ~kKnownFlags) != 0) return HeaderCheck::UnknownFlags;
  const HeaderCheck checksum = check_checksum(header, packet, ip_header);
  if (checksum != HeaderCheck::Ok || header.gso_type == VIRTIO_NET_HDR_GSO_NONE) return checksum;
  return check_gso(header, packet);
}

TransportHeader find_transport(std::span<const std::byte> packet) noexcept {
  const std::size_t ip_header = ip_header_length(packet);
  if (ip_header == 0) return {.offset = packet.size()};
  return ip_version(packet) == 4 ? find_transport_v4(packet, ip_header) : find_transport_v6(packet);
}

std::uint16_t true_header_length(std::span<const std::byte> packet,
                                 const VirtioNetHeader& header) noexcept {
  const TransportHeader at = find_transport(packet);
  std::size_t length = at.offset + transport_header_length(packet, at);
  if (needs_checksum(header)) length = std::max(length, checksum_end(header));
  return static_cast<std::uint16_t>(std::min({length, packet.size(), kMaxPacket}));
}

}  // namespace ipoverbs::tun
