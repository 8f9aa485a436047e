// Where an IP packet keeps its transport checksum, and what it covers.
//
// Theory of operation. locate() walks the IP header, and IPv6's extension headers, to the transport
// header and sums the pseudo-header, once, so that what follows (verifying, completing, turning a
// checksum into a partial one) works on a `Layout` and looks at no IP header again. It reads
// nothing beyond the packet whatever the packet says, and believes no length that doesn't fit.
//
// A packet that we don't understand is not an error: its kind is `opaque`, it is passed on, and its
// receiver judges it. Only what no receiver could accept is `malformed`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "csum/partial.h"

namespace ipoverbs::csum {

enum class LayoutKind : std::uint8_t {
  // TCP, UDP, ICMP (in IPv4) or ICMPv6 (in IPv6): every field of the Layout counts.
  covered,
  // No checksum that we know how to sum: another protocol, ESP, no next header, more than 16
  // extension headers; or a pseudo-header that the packet doesn't show as its receiver will see it:
  // a routing header with segments left (RFC 8200, section 8.1), a home address option (RFC 6275,
  // section 6.3), a source route (RFC 791, section 3.1).
  opaque,
  // A fragment that isn't the whole packet: its transport checksum, if it holds any, covers other
  // fragments too (RFC 791, section 3.2; RFC 8200, section 4.5).
  fragment,
  // A version that is neither 4 nor 6, or a length that contradicts another or the bytes at hand.
  malformed,
};

// Offsets and lengths are bytes from the beginning of the packet unless said otherwise.
struct Layout {
  LayoutKind kind = LayoutKind::malformed;
  bool v4 = false;
  Protocol protocol{};          // of the transport header
  std::uint32_t ip_header = 0;  // length of the IPv4 header with options, or of the IPv6 header: 40
  std::uint32_t ip_end = 0;     // end of the packet by its IP header; bytes after it aren't covered
  std::uint32_t start = 0;      // of the transport header: virtio's csum_start
  std::uint32_t end = 0;        // of what the checksum covers: ip_end, or less by UDP's length
  std::uint32_t field = 0;      // of the checksum field from `start`: virtio's csum_offset
  Partial pseudo_header;        // zero for ICMP in IPv4, which has none (RFC 792)

  // The bytes that the checksum covers, apart from the pseudo-header. `packet` is what was located.
  template <class Byte>
  [[nodiscard]] std::span<Byte> covered_part(std::span<Byte> packet) const noexcept {
    return packet.subspan(start, end - start);
  }
};

// What `packet`, which begins with its IP header, holds. The packet may be followed by bytes that
// its IP header doesn't count. kind is `covered` only if the checksum field lies within [start,
// end) and [start, end) within the packet; with `opaque` and `fragment`, v4, ip_header and ip_end
// count. Lengths that must fit: IPv4 total length (20 to the bytes at hand) and header length (RFC
// 791), IPv6 payload length (RFC 8200, section 3; no jumbograms), each extension header (RFC 8200,
// section 4), UDP length (8 to what is left, RFC 768), 20 bytes for TCP (RFC 9293, section 3.1), 4
// for ICMP. Neither the IPv4 header's checksum nor TCP's data offset is looked at.
[[nodiscard]] Layout locate(std::span<const std::byte> packet) noexcept;

}  // namespace ipoverbs::csum
