// The sum of a few bytes, inline: what sum() and copy() do below the length at which a call of a
// vector kernel pays, and what the kernels do with the bytes after their last vector.
//
// For csum.h and the kernels, not for others: these functions deal in raw accumulators, which are
// congruent to the sum modulo 2^16 - 1 and zero only if every byte is zero.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ipoverbs::csum::detail {

// a + b with an end-around carry.
[[nodiscard]] constexpr std::uint64_t add(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t sum = a + b;
  return sum + (sum < a ? 1 : 0);
}

template <class T>
[[nodiscard]] inline T load_word(const std::byte* from) noexcept {
  T word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Loads a T, and stores it at `to` if the caller copies.
template <class T, bool kCopy>
[[nodiscard, gnu::always_inline]] inline T take(const std::byte* from, std::byte* to) noexcept {
  const T word = load_word<T>(from);
  if constexpr (kCopy) std::memcpy(to, &word, sizeof word);
  return word;
}

// The sum of the last `n` bytes (1 to 7) before `from` + n, which stand at an even offset; at least
// 8 - n bytes stand before `from`. They are loaded, and copied, together with those before them,
// which are then shifted out: one load and one store whatever n is.
template <bool kCopy>
[[nodiscard]] inline std::uint64_t sum_last(const std::byte* from, std::byte* to,
                                            std::size_t n) noexcept {
  const auto word = take<std::uint64_t, kCopy>(from + n - 8, kCopy ? to + n - 8 : nullptr);
  const std::size_t others = 8 * (8 - n);
  return std::endian::native == std::endian::little ? word >> others : word << others;
}

// The sum of fewer than 8 bytes with none before them that may be read.
template <bool kCopy>
[[nodiscard]] inline std::uint64_t sum_few(const std::byte* from, std::byte* to,
                                           std::size_t n) noexcept {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  if ((n & 4) != 0) {
    sum += take<std::uint32_t, kCopy>(from, to);
    at = 4;
  }
  if ((n & 2) != 0) {
    sum += take<std::uint16_t, kCopy>(from + at, kCopy ? to + at : nullptr);
    at += 2;
  }
  if ((n & 1) != 0) {
    // The last byte is the first of a word whose other byte is zero (RFC 1071, section 4.1).
    const auto byte = take<std::uint8_t, kCopy>(from + at, kCopy ? to + at : nullptr);
    sum += std::endian::native == std::endian::little ? byte : std::uint64_t{byte} << 8;
  }
  return sum;
}

// Two 64-bit words, in a register of the instruction set that every CPU of the architecture has
// (SSE2, NEON, ...): a vector extension of GCC and Clang. Unaligned in memory.
using Pair [[gnu::vector_size(16)]] = std::uint64_t;

// Adds pairs of words without minding carries: `whole` is the sum modulo 2^64 of each of the two
// lanes, `upper` that of the words' upper halves. What was lost from `whole` follows from `upper`:
// with H the sum of the upper and L that of the lower halves, whole = L + 2^32 H and upper = H, so
// that L = whole - 2^32 upper. Both sums are exact below 2^34 bytes.
template <bool kCopy>
[[gnu::always_inline]] inline void add_pair(const std::byte* from, std::byte* to, Pair& whole,
                                            Pair& upper) noexcept {
  const Pair words = take<Pair, kCopy>(from, to);
  whole += words;
  upper += words >> 32;
}

// The sum of 16 bytes or more.
template <bool kCopy>
[[gnu::always_inline]] inline std::uint64_t sum_pairs(const std::byte* from, std::byte* to,
                                                      std::size_t n) noexcept {
  Pair whole = take<Pair, kCopy>(from, to);
  Pair upper = whole >> 32;
  std::size_t at = 16;
  for (; n - at >= 32; at += 32) {
    add_pair<kCopy>(from + at, kCopy ? to + at : nullptr, whole, upper);
    add_pair<kCopy>(from + at + 16, kCopy ? to + at + 16 : nullptr, whole, upper);
  }
  if (n - at >= 16) {
    add_pair<kCopy>(from + at, kCopy ? to + at : nullptr, whole, upper);
    at += 16;
  }
  const Pair exact = whole - (upper << 32) + upper;
  std::uint64_t sum = exact[0] + exact[1];
  if ((n & 8) != 0) {
    sum = add(sum, take<std::uint64_t, kCopy>(from + at, kCopy ? to + at : nullptr));
    at += 8;
  }
  if ((n & 7) != 0) {
    sum = add(sum, sum_last<kCopy>(from + at, kCopy ? to + at : nullptr, n & 7));
  }
  return sum;
}

// The sum of `n` bytes, fewer than 2^34; with kCopy they are also copied to `to`, else `to` isn't
// used. Any alignment; reads and writes nothing outside; the two must not overlap.
template <bool kCopy>
[[nodiscard, gnu::always_inline]] inline std::uint64_t sum_short(const std::byte* from,
                                                                 std::byte* to,
                                                                 std::size_t n) noexcept {
  if (n >= 16) return sum_pairs<kCopy>(from, to, n);
  if (n < 8) return sum_few<kCopy>(from, to, n);
  const auto word = take<std::uint64_t, kCopy>(from, to);
  if (n == 8) return word;
  return add(word, sum_last<kCopy>(from + 8, kCopy ? to + 8 : nullptr, n - 8));
}

}  // namespace ipoverbs::csum::detail
