#include <rte_config.h>
// Spares the build libbsd, which rte_raw_cksum has no use for.
#undef RTE_USE_LIBBSD
#include <rte_ip.h>

#include "bench/csum/contestants.h"

namespace ipoverbs::bench {

std::uint16_t rte_sum(const std::byte* from, std::size_t n) noexcept {
  return rte_raw_cksum(from, n);
}

}  // namespace ipoverbs::bench
