// The vector kernels: one pair of functions for each instruction set, chosen when the program
// starts.
//
// For csum.h, tests and benchmarks; callers use sum() and copy() of csum.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ipoverbs::csum::detail {

// The functions take any number of bytes below kLargest, of any alignment, and return an
// accumulator in the host's byte order: the sum itself, or something congruent to it modulo
// 2^16 - 1, zero only if every byte is zero. They read and write nothing outside the spans; `from`
// and `to` must not overlap. Any thread.
struct Kernels {
  std::uint64_t (*sum)(const std::byte* from, std::size_t n) noexcept;
  std::uint64_t (*copy)(std::byte* to, const std::byte* from, std::size_t n) noexcept;
  const char* target;  // Highway's name of the instruction set: "AVX3", "AVX2", "SSE4", ...
};

// Each byte pair adds at most 2^16 - 1 and the kernels' total is one number of 64 bits: four words
// of 16 bits for each 8 bytes, summed as two of 32 bits, reach 2^64 at 2^34 bytes.
inline constexpr std::size_t kLargest = std::size_t{1} << 34;

// The best that this CPU can run.
[[nodiscard]] Kernels choose_kernels();

// All that were compiled and this CPU can run, the best first; the last is without vectors.
[[nodiscard]] std::vector<Kernels> runnable_kernels();

// Chosen before anything in a file that includes this header runs, and constant from then on.
inline const Kernels kKernels = choose_kernels();

}  // namespace ipoverbs::csum::detail
