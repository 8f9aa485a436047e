// A TUN is born in the network namespace where /dev/net/tun was opened, and its descriptor works
// from any other; so does a netlink socket. Relied on by tun/interface.cc, which enters a namespace
// only to open them.
#include <netinet/in.h>

#include <array>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_namespace(Assumption& assumption) {
  const TestNamespace there;
  Fd queue;
  std::optional<RouteSocket> socket_there;
  in_thread([&] {
    there.enter();
    queue = open_queue("t0", QueueMode::Single, Attach::Create);
    socket_there.emplace();
  });
  assumption.holds("not here", !RouteSocket().find_link("t0"));
  const auto link = socket_there->find_link("t0");
  assumption.holds("seen through the netlink socket", link.has_value());
  assumption.equal("brought up from here", socket_there->change_link(link->index, {.up = true}), 0);
  assumption.equal("address given from here",
                   socket_there->add_address(link->index, prefix("10.77.0.2/24")), 0);
  in_thread([&] {
    there.enter();
    const UdpSocket receiver("10.77.0.2", 9);
    in_thread([&] {
      TestNamespace().enter();
      assumption.equal("written from a third", write_record(queue.get(), udp4_partial()), 0);
    });
    assumption.equal("datagrams received there", receiver.received_sizes().size(), 1U);
  });
}

}  // namespace ipoverbs::tun
