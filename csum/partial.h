// Partial sums of the Internet checksum: add them, shift them by a byte, fold them, change them.
//
// Theory of operation. The Internet checksum (RFC 1071) is the one's-complement sum of a packet's
// 16-bit words. That addition is associative and commutative and knows no byte order, so it may be
// done in words of any width, in the host's byte order, in any order and in parts: `Partial` is the
// sum of such a part. It is a number modulo 2^16 - 1 held in 64 bits and added with an end-around
// carry (2^64 - 1 is a multiple of 2^16 - 1), so it cannot overflow, however many are added.
//
// - A part of the packet that begins at an odd offset has its bytes in the other half of their
//   words: at_offset() puts that right (RFC 1071, section 2 (B): swap the bytes of the sum).
// - fold() brings a sum to the 16 bits that stand in packets; checksum() is its complement.
// - One's complement has two zeros. A sum of nothing but zero bytes folds to 0x0000, any other sum
//   that is a multiple of 2^16 - 1 folds to 0xffff. A packet with a right checksum sums to 0xffff.
// - A sum taken from memory stays in the host's byte order until fold() makes it a Be16, whose
//   bytes are those of the packet. Nobody outside this file has to think of byte order.
//
// Everything here is constexpr or inline, noexcept, without state, for any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/byte_order.h"

namespace ipoverbs::csum {

class Partial {
 public:
  // The sum of no bytes.
  constexpr Partial() noexcept = default;
  // The sum of one word as it stands in a packet, at an even offset.
  constexpr explicit Partial(Be16 word) noexcept : value_(std::bit_cast<std::uint16_t>(word)) {}
  // The sum of two consecutive words.
  constexpr explicit Partial(Be32 words) noexcept : value_(std::bit_cast<std::uint32_t>(words)) {}
  // From an accumulator of words that were loaded in the host's byte order, of 16, 32 or 64 bits.
  // The accumulator itself must not have lost a carry.
  [[nodiscard]] static constexpr Partial of_accumulator(std::uint64_t accumulator) noexcept {
    Partial p;
    p.value_ = accumulator;
    return p;
  }

  friend constexpr Partial operator+(Partial a, Partial b) noexcept {
    const std::uint64_t sum = a.value_ + b.value_;
    return of_accumulator(sum + (sum < a.value_ ? 1 : 0));
  }
  constexpr Partial& operator+=(Partial other) noexcept { return *this = *this + other; }
  // The sum that cancels this one: p + (-p) is zero (0xffff when folded).
  friend constexpr Partial operator-(Partial p) noexcept { return of_accumulator(~p.value_); }

  // What these bytes add to the sum of a whole in which they begin `offset` bytes after its first
  // (RFC 1071, section 2 (A), (B)). Turning the sum by 8 bits multiplies it by 2^8, which swaps the
  // two bytes of a sum modulo 2^16 - 1.
  [[nodiscard]] constexpr Partial at_offset(std::size_t offset) const noexcept {
    return of_accumulator(std::rotl(value_, offset % 2 == 0 ? 0 : 8));
  }

  // The 16-bit sum in the host's byte order; fold() is what packets take.
  [[nodiscard]] constexpr std::uint16_t folded() const noexcept {
    // Each step adds the halves to each other and keeps the carry: the upper half of x + (x with
    // its halves exchanged) is their end-around sum.
    const auto half = static_cast<std::uint32_t>((value_ + std::rotl(value_, 32)) >> 32);
    return static_cast<std::uint16_t>((half + std::rotl(half, 16)) >> 16);
  }

 private:
  std::uint64_t value_ = 0;
};

// The one's-complement sum in 16 bits, as it would stand in the packet. RFC 1071, section 1.
[[nodiscard]] constexpr Be16 fold(Partial sum) noexcept {
  return std::bit_cast<Be16>(sum.folded());
}

// The complement of the sum: what goes into a checksum field of IPv4, TCP or ICMP when the sum was
// taken with that field zero or left out. RFC 1071, section 1 (2).
[[nodiscard]] constexpr Be16 checksum(Partial sum) noexcept {
  return std::bit_cast<Be16>(static_cast<std::uint16_t>(~sum.folded()));
}

// The same for UDP, where a zero field means that there is no checksum: a computed zero is sent as
// 0xffff, the other zero of one's complement. RFC 768; RFC 8200, section 8.1.
[[nodiscard]] constexpr Be16 udp_checksum(Partial sum) noexcept {
  const Be16 field = checksum(sum);
  return field == Be16{} ? Be16{0xffff} : field;
}

// Whether bytes that hold their own checksum (and the pseudo-header, where there is one) sum to
// what they must. RFC 1071, section 1 (3).
[[nodiscard]] constexpr bool is_valid(Partial sum) noexcept { return sum.folded() == 0xffff; }

// The checksum field after the bytes `removed` have been replaced by the bytes `added`, which stand
// at the same offset: HC' = ~(~HC + ~m + m'). RFC 1624, section 3, equation 3. Not for a UDP field
// and not for a field that holds a partial checksum: see update_udp and update_partial.
[[nodiscard]] constexpr Be16 update(Be16 field, Partial removed, Partial added) noexcept {
  return checksum(-Partial(field) + -removed + added);
}
[[nodiscard]] constexpr Be16 update(Be16 field, Be16 removed, Be16 added) noexcept {
  return update(field, Partial(removed), Partial(added));
}

// The same for UDP: a zero field means no checksum and stays zero, and no other field becomes zero.
// RFC 768.
[[nodiscard]] constexpr Be16 update_udp(Be16 field, Partial removed, Partial added) noexcept {
  return field == Be16{} ? field : udp_checksum(-Partial(field) + -removed + added);
}

// The same for a field that holds the folded sum of the pseudo-header, not complemented, and waits
// to be completed (virtio 1.2, section 5.1.6.2). `removed` and `added` are bytes of the
// pseudo-header; a change of any other byte leaves such a field as it is.
[[nodiscard]] constexpr Be16 update_partial(Be16 field, Partial removed, Partial added) noexcept {
  return fold(Partial(field) + -removed + added);
}

// Assigned protocol numbers (IANA), as they stand in IPv4's protocol and IPv6's next-header field.
// Any other value of 8 bits is allowed.
enum class Protocol : std::uint8_t {
  hop_by_hop = 0,
  icmp = 1,
  tcp = 6,
  udp = 17,
  routing = 43,
  fragment = 44,
  authentication = 51,
  icmpv6 = 58,
  destination_options = 60,
  mobility = 135,
  host_identity = 139,
  shim6 = 140,
};

namespace detail {
// The sum of N bytes, N a multiple of 4 and small.
template <std::size_t N>
[[nodiscard]] Partial sum_of_address(std::span<const std::byte, N> bytes) noexcept {
  static_assert(N % 4 == 0 && N <= 64);
  std::uint64_t words = 0;
  for (std::size_t i = 0; i < N; i += 4) words += load<std::uint32_t>(bytes, i);
  return Partial::of_accumulator(words);
}
}  // namespace detail

// The pseudo-header of IPv4: two addresses of 4 bytes in network order, zero, protocol, and the
// length in bytes of the transport header with its data. RFC 9293, section 3.1; RFC 768. Where the
// IPv4 header has a source route, the destination is the final one (Linux: net/ipv4/tcp_ipv4.c).
[[nodiscard]] inline Partial pseudo_header(std::span<const std::byte, 4> source,
                                           std::span<const std::byte, 4> destination,
                                           Protocol protocol, std::uint16_t length) noexcept {
  return detail::sum_of_address(source) + detail::sum_of_address(destination) +
         Partial(Be16(static_cast<std::uint16_t>(protocol))) + Partial(Be16(length));
}

// The pseudo-header of IPv6: two addresses of 16 bytes, the length of 32 bits, zeros, and the
// protocol, which is that of the transport header even when extension headers stand before it. The
// destination is the final one: where a routing header has segments left, that isn't the address in
// the IPv6 header. RFC 8200, section 8.1.
[[nodiscard]] inline Partial pseudo_header(std::span<const std::byte, 16> source,
                                           std::span<const std::byte, 16> destination,
                                           Protocol protocol, std::uint32_t length) noexcept {
  return detail::sum_of_address(source) + detail::sum_of_address(destination) +
         Partial(Be32(length)) + Partial(Be16(static_cast<std::uint16_t>(protocol)));
}

}  // namespace ipoverbs::csum
