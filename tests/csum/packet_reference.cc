#include "tests/csum/packet_reference.h"

#include <algorithm>
#include <set>

#include "tests/csum/reference.h"

namespace ipoverbs::csum::reference {
namespace {

// A packet taken apart, every part a copy of its own.
struct Parsed {
  enum class Kind : std::uint8_t { malformed, fragment, opaque, tcp, udp, icmp };
  Kind kind = Kind::malformed;
  bool v4 = false;
  Bytes ip_header;
  std::size_t transport_at = 0;
  Bytes transport;            // what the checksum covers
  Bytes pseudo_header;        // empty for ICMP in IPv4
  std::size_t ip_length = 0;  // by the IP header

  [[nodiscard]] std::optional<std::size_t> field() const {
    switch (kind) {
      case Kind::tcp:
        return 16;
      case Kind::udp:
        return 6;
      case Kind::icmp:
        return 2;
      default:
        return std::nullopt;
    }
  }
};

unsigned at(const Bytes& bytes, std::size_t i) { return std::to_integer<unsigned>(bytes.at(i)); }
unsigned two(const Bytes& bytes, std::size_t i) { return at(bytes, i) * 256 + at(bytes, i + 1); }
Bytes slice(const Bytes& bytes, std::size_t from, std::size_t n) {
  Bytes out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(bytes.at(from + i));
  return out;
}
void append(Bytes& to, unsigned value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Whether the type-length-value options in `bytes` hold one of `wanted`. `pad` is the type without
// length, `end` ends the list, `extra` is what the length byte leaves out.
bool has_option(const Bytes& bytes, const std::set<unsigned>& wanted, unsigned pad,
                std::optional<unsigned> end, unsigned extra) {
  for (std::size_t i = 0; i < bytes.size();) {
    if (wanted.contains(at(bytes, i))) return true;
    if (end && at(bytes, i) == *end) return false;
    if (at(bytes, i) == pad) {
      i += 1;
    } else if (i + 1 == bytes.size() || at(bytes, i + 1) + extra < 2) {
      return false;
    } else {
      i += at(bytes, i + 1) + extra;
    }
  }
  return false;
}

void parse_transport(Parsed& parsed, unsigned protocol) {
  using Kind = Parsed::Kind;
  const std::size_t left = parsed.transport.size();
  if (protocol == 6) {
    parsed.kind = left >= 20 ? Kind::tcp : Kind::malformed;
  } else if (protocol == 17) {
    parsed.kind = left >= 8 ? Kind::udp : Kind::malformed;
    if (parsed.kind != Kind::udp) return;
    const unsigned length = two(parsed.transport, 4);
    if (length < 8 || length > left) {
      parsed.kind = Kind::malformed;
      return;
    }
    parsed.transport.resize(length);
  } else if (protocol == (parsed.v4 ? 1U : 58U)) {
    parsed.kind = left >= 4 ? Kind::icmp : Kind::malformed;
  } else {
    parsed.kind = Kind::opaque;
  }
  if (parsed.v4 && parsed.kind == Kind::icmp) return;
  const std::size_t addresses = parsed.v4 ? 12 : 8;
  parsed.pseudo_header = slice(parsed.ip_header, addresses, parsed.v4 ? 8 : 32);
  append(parsed.pseudo_header, static_cast<unsigned>(parsed.transport.size()), 4);
  append(parsed.pseudo_header, protocol, 4);
}

Parsed parse_v4(const Bytes& packet) {
  Parsed parsed;
  parsed.v4 = true;
  if (packet.size() < 20) return parsed;
  const std::size_t header = at(packet, 0) % 16 * 4;
  parsed.ip_length = two(packet, 2);
  if (header < 20 || parsed.ip_length < header || parsed.ip_length > packet.size()) return parsed;
  parsed.ip_header = slice(packet, 0, header);
  parsed.transport_at = header;
  parsed.transport = slice(packet, header, parsed.ip_length - header);
  if (two(packet, 6) % 0x4000 != 0) {
    parsed.kind = Parsed::Kind::fragment;
  } else if (has_option(slice(packet, 20, header - 20), {131, 137}, 1, 0, 0)) {
    parsed.kind = Parsed::Kind::opaque;
  } else {
    parse_transport(parsed, at(packet, 9));
  }
  return parsed;
}

Parsed parse_v6(const Bytes& packet) {
  Parsed parsed;
  if (packet.size() < 40) return parsed;
  parsed.ip_length = 40 + two(packet, 4);
  if (parsed.ip_length > packet.size()) return parsed;
  parsed.ip_header = slice(packet, 0, 40);
  Bytes rest = slice(packet, 40, parsed.ip_length - 40);
  unsigned type = at(packet, 6);
  bool hidden = false;
  int headers = 0;
  while (std::set<unsigned>{0, 43, 44, 51, 60, 135, 139, 140}.contains(type)) {
    if (rest.size() < 8) return parsed;
    std::size_t length = (at(rest, 1) + 1) * 8;
    if (type == 44) length = 8;
    if (type == 51) length = (at(rest, 1) + 2) * 4;
    if (length > rest.size()) return parsed;
    if (type == 44 && (two(rest, 2) / 8 != 0 || two(rest, 2) % 2 != 0)) {
      parsed.kind = Parsed::Kind::fragment;
      return parsed;
    }
    if (++headers > 16) {
      parsed.kind = Parsed::Kind::opaque;
      return parsed;
    }
    if (type == 43 && at(rest, 3) != 0) hidden = true;
    if (type == 60 && has_option(slice(rest, 2, length - 2), {201}, 0, std::nullopt, 2)) {
      hidden = true;
    }
    type = at(rest, 0);
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
  }
  parsed.transport_at = parsed.ip_length - rest.size();
  parsed.transport = rest;
  parsed.kind = Parsed::Kind::opaque;
  if (!hidden) parse_transport(parsed, type);
  return parsed;
}

Parsed parse(const Bytes& packet) {
  if (packet.empty()) return {};
  if (at(packet, 0) / 16 == 4) return parse_v4(packet);
  if (at(packet, 0) / 16 == 6) return parse_v6(packet);
  return {};
}

}  // namespace

Verdict verify(const Bytes& packet) {
  const Parsed parsed = parse(packet);
  if (parsed.kind == Parsed::Kind::malformed) return Verdict::malformed;
  if (parsed.v4 && sum(parsed.ip_header) != Be16(0xffff)) return Verdict::wrong_ip_header;
  if (!parsed.field()) return Verdict::unknown;
  if (parsed.kind == Parsed::Kind::udp && two(parsed.transport, 6) == 0) {
    return parsed.v4 ? Verdict::absent : Verdict::zero_in_ipv6;
  }
  const std::uint16_t before = sum(parsed.pseudo_header).value();
  return sum(parsed.transport, before) == Be16(0xffff) ? Verdict::valid : Verdict::wrong;
}

Completion complete(Bytes& packet, ChecksumPlace place) {
  const Parsed parsed = parse(packet);
  if (parsed.kind == Parsed::Kind::malformed) return Completion::malformed;
  if (parsed.kind == Parsed::Kind::fragment) return Completion::fragment;
  const std::size_t field = std::size_t{place.start} + place.offset;
  if (place.start < parsed.ip_header.size() || field + 2 > parsed.ip_length) {
    return Completion::bad_place;
  }
  Bytes covered = slice(packet, place.start, parsed.ip_length - place.start);
  std::uint16_t seed = 0;
  if (parsed.field()) {
    if (place.start == parsed.transport_at && place.offset == *parsed.field()) {
      covered = parsed.transport;
      covered.at(place.offset) = covered.at(place.offset + 1U) = std::byte{0};
      seed = sum(parsed.pseudo_header).value();
    } else if (place.start <= parsed.transport_at || parsed.kind != Parsed::Kind::udp) {
      return Completion::bad_place;
    }
  }
  auto checksum = static_cast<std::uint16_t>(~sum(covered, seed).value());
  if (checksum == 0) checksum = 0xffff;
  packet.at(field) = static_cast<std::byte>(checksum >> 8);
  packet.at(field + 1) = static_cast<std::byte>(checksum & 0xff);
  return Completion::done;
}

}  // namespace ipoverbs::csum::reference
