// A TUN takes MTUs of 68 to 65535 bytes and no others. Relied on by tun/config.h, whose own limit
// of 65520 must lie within.
#include <cerrno>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_mtu(Assumption& assumption) {
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  RouteSocket socket;
  const int index = socket.find_link("t0").value().index;
  assumption.equal("MTU 67", socket.change_link(index, {.mtu = 67}), EINVAL);
  assumption.equal("MTU 68", socket.change_link(index, {.mtu = 68}), 0);
  assumption.equal("MTU 65535", socket.change_link(index, {.mtu = 65535}), 0);
  assumption.equal("MTU 65536", socket.change_link(index, {.mtu = 65536}), EINVAL);
}

}  // namespace ipoverbs::tun
