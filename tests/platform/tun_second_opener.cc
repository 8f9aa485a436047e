// A second opener of a multi-queue TUN is let in without a word, of one with a single queue not,
// and the kernel tells how many are attached. Relied on by tun/lock.h and tun/interface.cc, which
// refuse what the kernel would not.
#include "core/error.h"
#include "tests/platform/platform.h"

namespace ipoverbs::tun {

namespace {

bool lets_in(const char* name, QueueMode mode) {
  try {
    const Fd second = open_queue(name, mode, Attach::Existing);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

void tun_second_opener(Assumption& assumption) {
  const Fd multi = open_queue("t0", QueueMode::Multi, Attach::Create);
  const Fd single = open_queue("t1", QueueMode::Single, Attach::Create);
  assumption.equal("queues attached", RouteSocket().find_link("t0").value().tun.value().queues, 1U);
  assumption.holds("second opener of a multi-queue TUN is let in", lets_in("t0", QueueMode::Multi));
  assumption.holds("second opener of a single-queue TUN is refused",
                   !lets_in("t1", QueueMode::Single));
}

}  // namespace ipoverbs::tun
