// The abstract name of a UNIX socket belongs to a network namespace. Relied on by tun/lock.h: two
// interfaces of one name in two namespaces are two locks.
#include "core/error.h"
#include "tests/platform/platform.h"
#include "tun/lock.h"

namespace ipoverbs::tun {

namespace {

bool lockable() {
  try {
    const Fd lock = lock_interface("t0");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

void abstract_socket_namespace(Assumption& assumption) {
  {
    const Fd lock = lock_interface("t0");
    assumption.holds("refused here", !lockable());
    in_thread([&] {
      TestNamespace().enter();
      assumption.holds("free in another namespace", lockable());
    });
  }
  assumption.holds("free once closed", lockable());
}

}  // namespace ipoverbs::tun
