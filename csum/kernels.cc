#include "csum/kernels.h"

#include <cassert>
#include <utility>

#include "csum/short.h"

// Highway compiles this file once for each instruction set (hwy/foreach_target.h).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "csum/kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h has to come first.
#include "hwy/highway.h"

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

template <bool kCopy>
HWY_INLINE void step(const std::byte* from, std::byte* to, std::size_t i, Vector& whole,
                     Vector& upper) {
  accumulate(taken<kCopy>(from, to, i), whole, upper);
}

// Vector `i`, copied with kCopy, as the first of two accumulators.
template <bool kCopy>
HWY_INLINE void first(const std::byte* from, std::byte* to, std::size_t i, Vector& whole,
                      Vector& upper) {
  whole = taken<kCopy>(from, to, i);
  upper = hn::ShiftRight<32>(whole);
}

// The sum of a vector's lanes.
template <class D>
HWY_INLINE std::uint64_t sum_of_lanes(D d, hn::Vec<D> v) {
#if HWY_HAVE_SCALABLE
  return hn::GetLane(hn::SumOfLanes(d, v));
#else
  if constexpr (hn::MaxLanes(D()) > 2) {
    const hn::Half<D> half;
    return sum_of_lanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return hn::ExtractLane(v, 0) + hn::ExtractLane(v, 1);
  }
#endif
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

#define ADVANCE(k)                       \
  from += (k) * size;                    \
  if constexpr (kCopy) to += (k) * size; \
  n -= (k) * size
template <bool kCopy>
HWY_INLINE std::uint64_t sum_vectors(const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to,
                                     std::size_t n) {
  const Words d;
  const std::size_t size = hn::Lanes(d) * sizeof(std::uint64_t);
  Vector whole0;
  Vector upper0;
  if (HWY_LIKELY(n >= 4 * size)) {
    Vector whole1;
    Vector upper1;
    first<kCopy>(from, to, 0, whole0, upper0);
    first<kCopy>(from, to, 1, whole1, upper1);
    step<kCopy>(from, to, 2, whole0, upper0);
    step<kCopy>(from, to, 3, whole1, upper1);
    ADVANCE(4);
    if (HWY_UNLIKELY(n >= 4 * size)) {
      assert(n < kLargest);
      while (n >= 8 * size) {
        step<kCopy>(from, to, 0, whole0, upper0);
        step<kCopy>(from, to, 1, whole1, upper1);
        step<kCopy>(from, to, 2, whole0, upper0);
        step<kCopy>(from, to, 3, whole1, upper1);
        step<kCopy>(from, to, 4, whole0, upper0);
        step<kCopy>(from, to, 5, whole1, upper1);
        step<kCopy>(from, to, 6, whole0, upper0);
        step<kCopy>(from, to, 7, whole1, upper1);
        ADVANCE(8);
      }
      if (n >= 4 * size) {
        step<kCopy>(from, to, 0, whole0, upper0);
        step<kCopy>(from, to, 1, whole1, upper1);
        step<kCopy>(from, to, 2, whole0, upper0);
        step<kCopy>(from, to, 3, whole1, upper1);
        ADVANCE(4);
      }
    }
    whole0 = hn::Add(whole0, whole1);
    upper0 = hn::Add(upper0, upper1);
  } else if (n >= size) {
    first<kCopy>(from, to, 0, whole0, upper0);
    ADVANCE(1);
  } else {
    return sum_short<kCopy>(from, to, n);
  }
  if (n == 0) return total(whole0, upper0);
  if (n >= 2 * size) {
    step<kCopy>(from, to, 0, whole0, upper0);
    step<kCopy>(from, to, 1, whole0, upper0);
    ADVANCE(2);
  }
  if (n >= size) {
    step<kCopy>(from, to, 0, whole0, upper0);
    ADVANCE(1);
  }
  return finish<kCopy>(from, to, n, whole0, upper0);
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
