// What the checksum benchmark compares our own functions with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ipoverbs::bench {

// 64-bit add with carry, eight words for each pass, the best that plain registers do: inline
// assembly on x86-64, since compilers make no chains of carries. The folded sum.
[[nodiscard]] std::uint16_t scalar_sum(const std::byte* from, std::size_t n) noexcept;

// DPDK's rte_raw_cksum, compiled for this machine. Present if BENCH_CSUM_RTE is defined.
[[nodiscard]] std::uint16_t rte_sum(const std::byte* from, std::size_t n) noexcept;

}  // namespace ipoverbs::bench
