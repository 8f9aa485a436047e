// A TUN's queue holds txqueuelen packets, of whatever size; what does not fit is lost, the sender
// sees success, and tx_dropped is the only place that tells. (A kernel that holds the sender back
// instead keeps packets in its qdisc: then more are read and fewer lost.) Relied on by
// queue_packets() of tun/config.h and by Statistics.
#include <netinet/in.h>

#include <array>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_full_queue(Assumption& assumption) {
  constexpr std::uint32_t kLength = 128;
  constexpr std::uint64_t kSent = 200;
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  RouteSocket socket;
  const int index = socket.find_link("t0").value().index;
  // Before it is up, or the kernel makes itself an address and sends a packet of its own.
  assumption.equal("queue of 128 packets",
                   socket.change_link(index, {.queue_length = kLength,
                                              .ipv6_address_generation = kNoAddressGeneration}),
                   0);
  set_link_up("t0", true);
  assumption.equal("address", socket.add_address(index, prefix("10.77.0.1/24")), 0);
  const UdpSocket sender("10.77.0.1", 1000);
  for (std::uint64_t i = 0; i < kSent; ++i) sender.send_to("10.77.0.2", 1000);
  const std::array<int, 1> queues{queue.get()};
  const std::uint64_t read = read_all(queues, IPPROTO_UDP).size();
  assumption.holds("at least 128 are read", read >= kLength);
  assumption.equal("read and dropped, of 200", read + socket.link(index).statistics.tx_dropped,
                   kSent);
}

}  // namespace ipoverbs::tun
