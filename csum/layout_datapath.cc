#include <optional>

#include "core/byte_order.h"
#include "csum/layout.h"

namespace ipoverbs::csum {
namespace {

constexpr std::uint32_t kIpv6Header = 40;
// More than any sender has reason for: RFC 8200, section 4.1, lists seven.
constexpr int kMaxExtensions = 16;

std::uint8_t byte_at(std::span<const std::byte> packet, std::size_t at) noexcept {
  return std::to_integer<std::uint8_t>(packet[at]);
}

std::uint16_t word_at(std::span<const std::byte> packet, std::size_t at) noexcept {
  return load<Be16>(packet, at).value();
}

Layout malformed() noexcept { return {}; }

// Offset of the checksum field in the transport header, and the least length of that header.
struct Field {
  std::uint32_t offset;
  std::uint32_t least;
};

std::optional<Field> field_of(Protocol protocol, bool v4) noexcept {
  switch (protocol) {
    case Protocol::tcp:
      return Field{16, 20};  // RFC 9293, section 3.1
    case Protocol::udp:
      return Field{6, 8};  // RFC 768
    case Protocol::icmp:
      if (v4) return Field{2, 4};  // RFC 792
      return std::nullopt;
    case Protocol::icmpv6:
      if (!v4) return Field{2, 4};  // RFC 4443, section 2.1
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Partial pseudo_header_of(std::span<const std::byte> packet, const Layout& layout) noexcept {
  const std::uint32_t length = layout.end - layout.start;
  if (!layout.v4) {
    return pseudo_header(packet.subspan<8, 16>(), packet.subspan<24, 16>(), layout.protocol,
                         length);
  }
  if (layout.protocol == Protocol::icmp) return {};
  return pseudo_header(packet.subspan<12, 4>(), packet.subspan<16, 4>(), layout.protocol,
                       static_cast<std::uint16_t>(length));
}

// Fills in what belongs to the transport header, which begins at layout.start.
Layout with_transport(std::span<const std::byte> packet, Layout layout) noexcept {
  const std::optional<Field> field = field_of(layout.protocol, layout.v4);
  if (!field) {
    layout.kind = LayoutKind::opaque;
    return layout;
  }
  const std::uint32_t left = layout.ip_end - layout.start;
  if (left < field->least) return malformed();
  layout.end = layout.ip_end;
  if (layout.protocol == Protocol::udp) {
    // The datagram may be shorter than its packet; the rest is covered by nothing.
    const std::uint32_t length = word_at(packet, layout.start + 4);
    if (length < field->least || length > left) return malformed();
    layout.end = layout.start + length;
  }
  layout.field = field->offset;
  layout.pseudo_header = pseudo_header_of(packet, layout);
  layout.kind = LayoutKind::covered;
  return layout;
}

// Whether the options of an IPv4 header hold a source route: types 131 and 137 (RFC 791, section
// 3.1). Malformed options end the search: they are the receiver's to judge.
bool has_source_route(std::span<const std::byte> options) noexcept {
  std::size_t at = 0;
  while (at < options.size()) {
    const unsigned type = byte_at(options, at);
    if (type == 131 || type == 137) return true;
    if (type == 0) return false;  // end of options
    if (type == 1) {              // no operation
      ++at;
      continue;
    }
    if (at + 1 >= options.size() || byte_at(options, at + 1) < 2) return false;
    at += byte_at(options, at + 1);
  }
  return false;
}

Layout locate_v4(std::span<const std::byte> packet) noexcept {
  if (packet.size() < 20) return malformed();
  Layout layout;
  layout.v4 = true;
  layout.ip_header = (byte_at(packet, 0) & 0xfU) * 4;
  layout.ip_end = word_at(packet, 2);
  if (layout.ip_header < 20 || layout.ip_end < layout.ip_header || layout.ip_end > packet.size()) {
    return malformed();
  }
  layout.protocol = Protocol{byte_at(packet, 9)};
  layout.start = layout.ip_header;
  // More fragments, or an offset: the lower 14 bits without "don't fragment" (RFC 791,
  // section 3.1).
  if ((word_at(packet, 6) & 0x3fffU) != 0) {
    layout.kind = LayoutKind::fragment;
    return layout;
  }
  if (layout.ip_header > 20 && has_source_route(packet.subspan(20, layout.ip_header - 20))) {
    layout.kind = LayoutKind::opaque;
    return layout;
  }
  return with_transport(packet, layout);
}

// Whether a destination options header holds a home address, option type 201 (RFC 6275, section
// 6.3), which the pseudo-header has instead of the source. Malformed options end the search.
bool has_home_address(std::span<const std::byte> header) noexcept {
  std::size_t at = 2;
  while (at < header.size()) {
    const unsigned type = byte_at(header, at);
    if (type == 201) return true;
    if (type == 0) {  // Pad1: no length byte
      ++at;
      continue;
    }
    if (at + 1 >= header.size()) return false;
    at += 2U + byte_at(header, at + 1);
  }
  return false;
}

// What one extension header says about the walk.
enum class Step : std::uint8_t { next, opaque, fragment };

Step judge_extension(Protocol type, std::span<const std::byte> header) noexcept {
  switch (type) {
    case Protocol::routing:  // byte 3: segments left (RFC 8200, section 4.4)
      return byte_at(header, 3) == 0 ? Step::next : Step::opaque;
    case Protocol::destination_options:
      return has_home_address(header) ? Step::opaque : Step::next;
    case Protocol::fragment:
      // Offset 0 and no more fragments: an atomic fragment, the whole packet (RFC 6946).
      return (word_at(header, 2) & 0xfff9U) == 0 ? Step::next : Step::fragment;
    default:
      return Step::next;
  }
}

// The length in bytes of an extension header whose first two bytes are given; 0 if `type` is none.
std::uint32_t extension_length(Protocol type, std::uint8_t length_byte) noexcept {
  switch (type) {
    case Protocol::hop_by_hop:
    case Protocol::routing:
    case Protocol::destination_options:
    case Protocol::mobility:
    case Protocol::host_identity:
    case Protocol::shim6:
      return 8U * (length_byte + 1U);  // RFC 8200, section 4; RFC 6564, section 4
    case Protocol::fragment:
      return 8;  // RFC 8200, section 4.5
    case Protocol::authentication:
      return 4U * (length_byte + 2U);  // RFC 4302, section 2.2
    default:
      return 0;
  }
}

Layout locate_v6(std::span<const std::byte> packet) noexcept {
  if (packet.size() < kIpv6Header) return malformed();
  Layout layout;
  layout.ip_header = kIpv6Header;
  layout.ip_end = kIpv6Header + word_at(packet, 4);
  if (layout.ip_end > packet.size()) return malformed();
  layout.protocol = Protocol{byte_at(packet, 6)};
  layout.start = kIpv6Header;
  bool opaque = false;
  for (int i = 0; extension_length(layout.protocol, 0) != 0; ++i) {
    const std::uint32_t left = layout.ip_end - layout.start;
    if (left < 8) return malformed();
    const std::uint32_t length =
        extension_length(layout.protocol, byte_at(packet, layout.start + 1));
    if (length > left) return malformed();
    const Step step = judge_extension(layout.protocol, packet.subspan(layout.start, length));
    layout.kind = LayoutKind::fragment;
    if (step == Step::fragment) return layout;
    layout.kind = LayoutKind::opaque;
    if (i == kMaxExtensions) return layout;
    opaque = opaque || step == Step::opaque;
    layout.protocol = Protocol{byte_at(packet, layout.start)};
    layout.start += length;
  }
  if (!opaque) return with_transport(packet, layout);
  layout.kind = LayoutKind::opaque;
  return layout;
}

}  // namespace

Layout locate(std::span<const std::byte> packet) noexcept {
  if (packet.empty()) return malformed();
  switch (byte_at(packet, 0) >> 4) {
    case 4:
      return locate_v4(packet);
    case 6:
      return locate_v6(packet);
    default:
      return malformed();
  }
}

}  // namespace ipoverbs::csum
