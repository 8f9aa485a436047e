// A TUN that is down judges the virtio header of a written packet before it says EIO. Relied on by
// tun/probe.cc, which tries super-packets before the interface is up.
#include <cerrno>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_header_before_link_state(Assumption& assumption) {
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  const Record good = tcp4_super_packet();
  Record bad = good;
  bad.header.gso_size = Le16(0);
  assumption.equal("good super-packet, down", write_record(queue.get(), good), EIO);
  assumption.equal("gso_size 0, down", write_record(queue.get(), bad), EINVAL);
  set_link_up("t0", true);
  assumption.equal("good super-packet, up", write_record(queue.get(), good), 0);
  assumption.equal("gso_size 0, up", write_record(queue.get(), bad), EINVAL);
  assumption.equal("packets that reached the stack",
                   RouteSocket().find_link("t0").value().statistics.rx_packets, 1U);
}

}  // namespace ipoverbs::tun
