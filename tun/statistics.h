// What the kernel counts about an interface.
#pragma once

#include <cstdint>

namespace ipoverbs::tun {

// The kernel's counters of the interface, in the kernel's direction: tx is what the host sent and
// the daemon reads, rx is what the daemon wrote. tx_dropped is the only place where packets show
// that found a queue full. rx_dropped begins with the few packets of
// probe_offloads().
struct Statistics {
  std::uint64_t rx_packets = 0, rx_bytes = 0, rx_errors = 0, rx_dropped = 0;
  std::uint64_t tx_packets = 0, tx_bytes = 0, tx_errors = 0, tx_dropped = 0;
};

}  // namespace ipoverbs::tun
