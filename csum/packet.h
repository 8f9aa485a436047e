// Checksums of whole IP packets: verify them, complete partial ones, make them partial again.
//
// Theory of operation. A packet from the kernel's TUN may hold a *partial* checksum: the field has
// the folded sum of the pseudo-header, and virtio's header says where to sum from and where the
// field is (virtio 1.2, section 5.1.6.2). complete() finishes such a packet in place, and
// copy_and_complete() on its copy, for the price of the copy. verify() judges a packet whose
// checksums are complete. make_partial() turns a verified checksum back into a partial one, so that
// the kernel doesn't sum the packet again.
//
// Super-packets (TSO, USO) are packets here: the checksum is that of the packet as it stands, with
// the length that its IP header says.
//
// UDP's zero: a field of zero means that there is no checksum. In IPv4 such a datagram is left as
// it is (RFC 768); in IPv6 it is an error (RFC 8200, section 8.1). A computed zero is stored as
// 0xffff.
//
// Spans begin with the IP header and may hold bytes after the packet's end, which are not touched
// (but copied). No function reads or writes outside its spans, whatever the packet says; all are
// noexcept and allocate nothing. Any alignment, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "csum/layout.h"
#include "csum/partial.h"

namespace ipoverbs::csum {

// virtio's csum_start and csum_offset: where the sum begins, in bytes from the beginning of the IP
// packet, and where its field is, in bytes from there.
struct ChecksumPlace {
  std::uint16_t start = 0;
  std::uint16_t offset = 0;
  friend bool operator==(const ChecksumPlace&, const ChecksumPlace&) = default;
};

enum class Completion : std::uint8_t {
  done,
  // The packet is malformed (LayoutKind).
  malformed,
  // A fragment, which cannot hold a partial checksum.
  fragment,
  // The place lies outside the packet, in its IP header, or where its protocol has no checksum.
  bad_place,
};

// Stores the complete checksum of `packet`. Nothing is changed unless the result is `done`.
//
// Where the place is that of the packet's own transport header, the pseudo-header is summed here
// and what the field holds doesn't matter. Otherwise (a place within the payload of UDP, for a
// tunnel's inner packet; a protocol or header that we don't know) the field's contents count as the
// sum of the pseudo-header, as virtio says. A sum of zero is stored as 0xffff for every protocol,
// as Linux does (net/core/dev.c, skb_checksum_help): right for UDP, equal for the others.
[[nodiscard]] Completion complete(std::span<std::byte> packet, ChecksumPlace place) noexcept;

// Copies all of `packet` to the beginning of `to`, which is at least as long and doesn't overlap
// it, and stores the checksum there, summed while it is copied. Nothing is copied unless the result
// is `done`.
[[nodiscard]] Completion copy_and_complete(std::span<std::byte> to,
                                           std::span<const std::byte> packet,
                                           ChecksumPlace place) noexcept;

enum class Verdict : std::uint8_t {
  // Every checksum of the packet is right.
  valid,
  // UDP over IPv4 without a checksum.
  absent,
  // No transport checksum that can be summed here: LayoutKind::opaque or fragment. IPv4's header
  // checksum is right.
  unknown,
  // The transport checksum is wrong.
  wrong,
  // UDP over IPv6 without a checksum.
  zero_in_ipv6,
  // The checksum of the IPv4 header is wrong.
  wrong_ip_header,
  // LayoutKind::malformed.
  malformed,
};

// Whether a packet with this verdict is to be passed on.
[[nodiscard]] constexpr bool is_good(Verdict verdict) noexcept {
  return verdict == Verdict::valid || verdict == Verdict::absent || verdict == Verdict::unknown;
}

// Judges the checksums of `packet`, IPv4's header included. RFC 1071, section 1 (3). Neither zero
// of one's complement is wrong in TCP and ICMP.
[[nodiscard]] Verdict verify(std::span<const std::byte> packet) noexcept;
// The same for a packet that has been located.
[[nodiscard]] Verdict verify(std::span<const std::byte> packet, const Layout& layout) noexcept;
// The same where layout.covered_part(packet) has been summed already, as by copy(); `covered`
// counts only if layout.kind is `covered`.
[[nodiscard]] Verdict verify(std::span<const std::byte> packet, const Layout& layout,
                             Partial covered) noexcept;

// Replaces the checksum of TCP or UDP by the folded sum of the pseudo-header and says where it is.
// For packets that are valid or about to be checked by nobody: the checksum that was there is lost.
// nullopt, and no change, for every other protocol, for UDP without a checksum, and where the
// checksum covers less than the span, which a partial checksum can't express. `layout` is
// locate(packet).
[[nodiscard]] std::optional<ChecksumPlace> make_partial(std::span<std::byte> packet,
                                                        const Layout& layout) noexcept;

// The checksum that an IPv4 header should have; the field's contents don't count. `header` is the
// whole header with its options, 20 to 60 bytes, a multiple of 4. RFC 791, section 3.1.
[[nodiscard]] Be16 ipv4_header_checksum(std::span<const std::byte> header) noexcept;
// Whether it has that one. The same bounds.
[[nodiscard]] bool is_ipv4_header_valid(std::span<const std::byte> header) noexcept;

}  // namespace ipoverbs::csum
