// Where a field of an InfiniBand management datagram lies, and how it is read and written.
//
// The specification names a field by its byte and, inside the byte, by its bits, the most
// significant first; fields run on from byte to byte in network order. BitField says just that.
// Control path only: it goes byte by byte.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ipoverbs::verbs::soft {

struct BitField {
  std::size_t byte = 0;  // offset of the first byte that holds a bit of the field
  unsigned bit = 0;      // the first bit in it, 0 the most significant
  unsigned width = 0;    // bits, 1..64; with `bit` at most eight bytes are touched
  friend constexpr bool operator==(const BitField&, const BitField&) = default;
};

// The same field `by` bytes further on.
[[nodiscard]] constexpr BitField shifted(BitField field, std::size_t by) {
  return {field.byte + by, field.bit, field.width};
}

[[nodiscard]] constexpr std::size_t bytes_touched(BitField field) {
  return (field.bit + field.width + 7) / 8;
}

// All ones in the field's width.
[[nodiscard]] constexpr std::uint64_t widest(BitField field) {
  return field.width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.width) - 1;
}

// `bytes` holds the whole field.
[[nodiscard]] constexpr std::uint64_t get_bits(std::span<const std::byte> bytes, BitField field) {
  const std::size_t touched = bytes_touched(field);
  std::uint64_t window = 0;
  for (const std::byte b : bytes.subspan(field.byte, touched)) {
    window = window << 8 | std::to_integer<std::uint64_t>(b);
  }
  return window >> (touched * 8 - field.bit - field.width) & widest(field);
}

// `value` fits the field; the bits beside it keep what they were.
constexpr void set_bits(std::span<std::byte> bytes, BitField field, std::uint64_t value) {
  assert(value <= widest(field));
  const std::size_t touched = bytes_touched(field);
  const auto shift = static_cast<unsigned>(touched * 8 - field.bit - field.width);
  const std::uint64_t mask = widest(field) << shift;
  const std::uint64_t shifted_value = value << shift;
  const std::span<std::byte> window = bytes.subspan(field.byte, touched);
  for (std::size_t i = 0; i < touched; ++i) {
    const auto down = static_cast<unsigned>((touched - 1 - i) * 8);
    const auto keep = static_cast<std::byte>(~(mask >> down) & 0xffU);
    window[i] = (window[i] & keep) | static_cast<std::byte>(shifted_value >> down & 0xffU);
  }
}

}  // namespace ipoverbs::verbs::soft
