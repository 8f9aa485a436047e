// The Internet checksum (RFC 1071) at the speed of memory, alone and together with a copy.
//
// Theory of operation. sum() adds the bytes of a span up, copy() copies a span and adds it up in
// the same pass: each byte is loaded once. Both return a `Partial` (csum/partial.h), which callers
// add to the sums of other parts, fold, complement or compare. Both exist for lists of spans, whose
// pieces may be empty, of odd length and of any alignment. What packets make of sums is in
// csum/packet.h.
//
// Spans up to kShort bytes are summed inline. Longer ones go to a kernel written with Google
// Highway, compiled for every instruction set that Highway knows and chosen once when the program
// starts (csum/kernels.h).
//
// - Sizes are bytes; a span holds fewer than 2^34 of them. Lists may hold more.
// - Alignment: any, of source and of destination. A source and a destination that begin at the same
//   offset within 4 KiB cost speed (the processor takes loads for dependent on earlier stores).
// - Nothing outside the spans is read or written, not even within a page or a cache line.
// - All is noexcept, allocates nothing, holds no state, and may be called from any thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>

#include "csum/kernels.h"
#include "csum/partial.h"
#include "csum/short.h"

namespace ipoverbs::csum {

// Pieces of a scatter list.
using Piece = std::span<const std::byte>;
using MutablePiece = std::span<std::byte>;

// The longest span, in bytes, that is summed or copied without calling a kernel. Measured: see
// docs/performance.md.
inline constexpr std::size_t kShort = 96;

// `initial` plus the sum of `bytes` taken as beginning at an even offset (if they don't:
// Partial::at_offset). A last byte without a pair counts as the first of a word that ends in a zero
// byte. RFC 1071, sections 1 and 4.1.
[[nodiscard, gnu::always_inline]] inline Partial sum(std::span<const std::byte> bytes,
                                                     Partial initial = {}) noexcept {
  return initial +
         Partial::of_accumulator(bytes.size() <= kShort
                                     ? detail::sum_short<false>(bytes.data(), nullptr, bytes.size())
                                     : detail::kKernels.sum(bytes.data(), bytes.size()));
}

// Copies `from` to the beginning of `to`, which is at least as long and doesn't overlap it, and
// returns what sum(from, initial) would. RFC 1071, section 2 (3).
[[nodiscard, gnu::always_inline]] inline Partial copy(std::span<std::byte> to,
                                                      std::span<const std::byte> from,
                                                      Partial initial = {}) noexcept {
  assert(from.size() <= to.size());
  return initial +
         Partial::of_accumulator(from.size() <= kShort
                                     ? detail::sum_short<true>(from.data(), to.data(), from.size())
                                     : detail::kKernels.copy(to.data(), from.data(), from.size()));
}

// `initial` plus the sum of the pieces, taken as one run of bytes that begins at an even offset.
[[nodiscard]] Partial sum(std::span<const Piece> pieces, Partial initial = {}) noexcept;

// Copies the pieces of `from`, in their order, to the pieces of `to`, in theirs, and returns what
// sum(from, initial) would. The boundaries of the two need have nothing to do with each other; `to`
// has room for all of `from`, and no piece overlaps another.
[[nodiscard]] Partial copy(std::span<const MutablePiece> to, std::span<const Piece> from,
                           Partial initial = {}) noexcept;

// The same with a destination, or a source, in one piece.
[[nodiscard]] Partial copy(std::span<std::byte> to, std::span<const Piece> from,
                           Partial initial = {}) noexcept;
[[nodiscard]] Partial copy(std::span<const MutablePiece> to, std::span<const std::byte> from,
                           Partial initial = {}) noexcept;

}  // namespace ipoverbs::csum
