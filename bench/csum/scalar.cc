#include "bench/csum/contestants.h"
#include "csum/partial.h"
#include "csum/short.h"

namespace ipoverbs::bench {
namespace {

// Adds 64 bytes and the carry out of them to `sum`.
std::uint64_t add_block(std::uint64_t sum, const std::byte* from) noexcept {
#if defined(__x86_64__)
  asm("addq   (%1), %0\n\t"
      "adcq  8(%1), %0\n\t"
      "adcq 16(%1), %0\n\t"
      "adcq 24(%1), %0\n\t"
      "adcq 32(%1), %0\n\t"
      "adcq 40(%1), %0\n\t"
      "adcq 48(%1), %0\n\t"
      "adcq 56(%1), %0\n\t"
      "adcq    $0, %0"
      : "+r"(sum)
      : "r"(from), "m"(*reinterpret_cast<const std::byte(*)[64]>(from))
      : "cc");
  return sum;
#else
  for (std::size_t i = 0; i < 64; i += 8) {
    sum = csum::detail::add(sum, csum::detail::load_word<std::uint64_t>(from + i));
  }
  return sum;
#endif
}

}  // namespace

std::uint16_t scalar_sum(const std::byte* from, std::size_t n) noexcept {
  std::uint64_t sum = 0;
  for (; n >= 64; n -= 64, from += 64) sum = add_block(sum, from);
  sum = csum::detail::add(sum, csum::detail::sum_short<false>(from, nullptr, n));
  return csum::Partial::of_accumulator(sum).folded();
}

}  // namespace ipoverbs::bench
