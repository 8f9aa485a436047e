#include "csum/kernels.h"

#include <utility>

#include "csum/short.h"

// Highway compiles this file once for each instruction set (hwy/foreach_target.h).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "csum/kernels.cc"
// foreach_target.h has to come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ipoverbs::csum::detail::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

std::uint64_t sum(const std::byte* from, std::size_t n) noexcept {
  return sum_short<false>(from, nullptr, n);
}
std::uint64_t copy(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  return sum_short<true>(from, to, n);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint64_t>;
#if !HWY_MEM_OPS_MIGHT_FAULT
using Bytes = hn::ScalableTag<std::uint8_t>;
#endif
using Vector = hn::Vec<Words>;

const std::uint64_t* words(const std::byte* at) {
  return reinterpret_cast<const std::uint64_t*>(at);
}
std::uint64_t* words(std::byte* at) { return reinterpret_cast<std::uint64_t*>(at); }

// Keeps a loaded vector in its register. GCC 12 takes an unaligned load for an operand and repeats
// it for each use: two loads a vector, and the sum is bound by loads (131 instead of 152 GB/s with
// AVX2 at 4 KiB on Zen 5). Clang needs no such help.
HWY_INLINE Vector in_register(Vector v) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC_ACTUAL
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// Adds a vector of 64-bit words to two accumulators: `whole` takes the words modulo 2^64, `upper`
// their upper halves. With H the sum of the upper and L that of the lower halves, whole is
// L + 2^32 H and upper is H, so that L = whole - 2^32 upper; all are exact below 2^34 bytes. Three
// instructions a vector, where masking the lower halves out would take four.
HWY_INLINE void accumulate(Vector v, Vector& whole, Vector& upper) {
  whole = hn::Add(whole, v);
  upper = hn::Add(upper, hn::ShiftRight<32>(v));
}

// Vector `i`, copied with kCopy.
template <bool kCopy>
HWY_INLINE Vector taken(const std::byte* from, std::byte* to, std::size_t i) {
  const Words d;
  const std::size_t at = i * hn::Lanes(d) * sizeof(std::uint64_t);
  const Vector v = in_register(hn::LoadU(d, words(from + at)));
  if constexpr (kCopy) hn::StoreU(v, d, words(to + at));
  return v;
}

// The sum of a vector's lanes, halved down to two: GCC makes less of Highway's own sum of eight.
template <class D>
HWY_INLINE std::uint64_t sum_of_lanes(D d, hn::Vec<D> v) {
#if !HWY_HAVE_SCALABLE
  if constexpr (hn::MaxLanes(D()) > 2) {
    const hn::Half<D> half;
    return sum_of_lanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// L + H of all lanes.
HWY_INLINE std::uint64_t total(Vector whole, Vector upper) {
  return sum_of_lanes(Words(), hn::Add(hn::Sub(whole, hn::ShiftLeft<32>(upper)), upper));
}

// Sums, and copies, the `n` bytes after the last whole vector, fewer than a vector, and returns the
// sum of everything.
template <bool kCopy>
HWY_INLINE std::uint64_t finish(const std::byte* from, std::byte* to, std::size_t n, Vector whole,
                                Vector upper) {
#if HWY_MEM_OPS_MIGHT_FAULT
  return add(total(whole, upper), sum_short<kCopy>(from, to, n));
#else
  if (n != 0) {
    const Bytes d;
    const auto mask = hn::FirstN(d, n);
    const auto v = hn::MaskedLoad(mask, d, reinterpret_cast<const std::uint8_t*>(from));
    if constexpr (kCopy) hn::BlendedStore(v, mask, d, reinterpret_cast<std::uint8_t*>(to));
    accumulate(hn::BitCast(Words(), v), whole, upper);
  }
  return total(whole, upper);
#endif
}

// Takes the vectors I from `from`, in turn into two pairs of accumulators (one pair would bind the
// loop to the latency of additions), and moves on behind them.
template <bool kCopy, std::size_t... I>
HWY_INLINE void take_vectors(std::index_sequence<I...>, const std::byte*& from, std::byte*& to,
                             Vector& whole0, Vector& upper0, Vector& whole1, Vector& upper1) {
  (accumulate(taken<kCopy>(from, to, I), I % 2 == 0 ? whole0 : whole1,
              I % 2 == 0 ? upper0 : upper1),
   ...);
  const std::size_t taken_bytes = sizeof...(I) * hn::Lanes(Words()) * sizeof(std::uint64_t);
  from += taken_bytes;
  if constexpr (kCopy) to += taken_bytes;
}

// The rest of a span that begins with vectors summed already, fewer than four more to come.
template <bool kCopy>
HWY_INLINE std::uint64_t finish_few(const std::byte* from, std::byte* to, std::size_t n,
                                    Vector whole, Vector upper) {
  const std::size_t size = hn::Lanes(Words()) * sizeof(std::uint64_t);
  std::size_t at = 0;
  for (; n - at >= size; at += size) {
    accumulate(taken<kCopy>(from + at, kCopy ? to + at : nullptr, 0), whole, upper);
  }
  return finish<kCopy>(from + at, kCopy ? to + at : nullptr, n - at, whole, upper);
}

// Fewer than eight vectors: a call costs as much as the bytes, so accumulators begin with what is
// loaded first, and four vectors go without a loop.
template <bool kCopy>
HWY_INLINE std::uint64_t sum_few_vectors(const std::byte* from, std::byte* to, std::size_t n) {
  const std::size_t size = hn::Lanes(Words()) * sizeof(std::uint64_t);
  if (HWY_LIKELY(n >= 4 * size)) {
    const Vector v0 = taken<kCopy>(from, to, 0);
    const Vector v1 = taken<kCopy>(from, to, 1);
    const Vector v2 = taken<kCopy>(from, to, 2);
    const Vector v3 = taken<kCopy>(from, to, 3);
    const Vector whole = hn::Add(hn::Add(v0, v1), hn::Add(v2, v3));
    const Vector upper = hn::Add(hn::Add(hn::ShiftRight<32>(v0), hn::ShiftRight<32>(v1)),
                                 hn::Add(hn::ShiftRight<32>(v2), hn::ShiftRight<32>(v3)));
    if (HWY_LIKELY(n == 4 * size)) return total(whole, upper);
    return finish_few<kCopy>(from + 4 * size, kCopy ? to + 4 * size : nullptr, n - 4 * size, whole,
                             upper);
  }
  if (n < size) return sum_short<kCopy>(from, to, n);
  const Vector whole = taken<kCopy>(from, to, 0);
  return finish_few<kCopy>(from + size, kCopy ? to + size : nullptr, n - size, whole,
                           hn::ShiftRight<32>(whole));
}

template <bool kCopy>
HWY_INLINE std::uint64_t sum_vectors(const std::byte* from, std::byte* to, std::size_t n) {
  const Words d;
  const std::size_t size = hn::Lanes(d) * sizeof(std::uint64_t);
  if (HWY_LIKELY(n < 8 * size)) return sum_few_vectors<kCopy>(from, to, n);
  const std::size_t vectors = n / size;
  Vector whole0 = hn::Zero(d);
  Vector upper0 = hn::Zero(d);
  Vector whole1 = hn::Zero(d);
  Vector upper1 = hn::Zero(d);
  const std::byte* const end_of_loop = from + vectors / 8 * 8 * size;
  while (from != end_of_loop) {
    take_vectors<kCopy>(std::make_index_sequence<8>(), from, to, whole0, upper0, whole1, upper1);
  }
  if ((vectors & 4) != 0) {
    take_vectors<kCopy>(std::make_index_sequence<4>(), from, to, whole0, upper0, whole1, upper1);
  }
  if ((vectors & 2) != 0) {
    take_vectors<kCopy>(std::make_index_sequence<2>(), from, to, whole0, upper0, whole1, upper1);
  }
  if ((vectors & 1) != 0) {
    take_vectors<kCopy>(std::make_index_sequence<1>(), from, to, whole0, upper0, whole1, upper1);
  }
  return finish<kCopy>(from, to, n % size, hn::Add(whole0, whole1), hn::Add(upper0, upper1));
}

std::uint64_t sum(const std::byte* from, std::size_t n) noexcept {
  return sum_vectors<false>(from, nullptr, n);
}
std::uint64_t copy(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  return sum_vectors<true>(from, to, n);
}

#endif

Kernels kernels() { return {&sum, &copy, hwy::TargetName(HWY_TARGET)}; }

}  // namespace ipoverbs::csum::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ipoverbs::csum::detail {

HWY_EXPORT(kernels);

Kernels choose_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

std::vector<Kernels> runnable_kernels() {
  std::vector<Kernels> all;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    all.push_back(choose_kernels());
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return all;
}

}  // namespace ipoverbs::csum::detail
#endif
