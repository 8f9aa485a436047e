// TUNSETOFFLOAD refuses sets that make no sense. Relied on by intersect() of tun/offloads.h, which
// makes sets consistent, and by tun/probe.cc, which goes from the largest down.
#include <cerrno>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_offload_sets(Assumption& assumption) {
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  const auto set = [&](const Offloads& offloads) { return set_offloads(queue.get(), offloads); };
  assumption.equal("nothing", set({}), 0);
  assumption.equal("checksum", set({.checksum = true}), 0);
  assumption.equal("checksum and TSO4", set({.checksum = true, .tso4 = true}), 0);
  assumption.equal("TSO4 without checksum", set({.tso4 = true}), EINVAL);
  assumption.equal("ECN without TSO", set({.checksum = true, .tso_ecn = true}), EINVAL);
}

}  // namespace ipoverbs::tun
