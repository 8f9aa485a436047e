// A worker with two peers, one of which vanishes: the other must not notice.
#include <functional>

#include <gtest/gtest.h>

#include "tests/transport/node_rig.h"

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::ip_packet;
using support::LoopbackNetwork;
using test::Host;

class DeadPeerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::uint64_t id = 0;
    for (Host* host : {&a, &b, &c}) {
      host->options.dead_time = 1h;  // longer than any test: nobody is ever given up
      host->start(++id, now);
    }
    ASSERT_TRUE(run_until([&] { return credits(0) > 0 && credits(1) > 0; }));
  }
  bool run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 20000; ++i) {
      for (Host* host : {&a, &b, &c}) host->node().process(now);
      if (done()) return true;
      now += 1ms;
      support::wait_for_any({a.node().event_fd(), c.node().event_fd()});
    }
    return false;
  }
  std::uint32_t credits(std::size_t peer) { return a.peer(peer, now).sessions.at(0).send_credits; }
  // Until B, which grants a few at first, has granted as many as A can have slabs.
  bool grow_credits_of_b() {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    const auto receive = [&] {
      while (b.tun().receive()) ++received;
    };
    return run_until([&] {
             if (sent - received < 4 && a.tun().send(kSmall)) ++sent;
             receive();
             return credits(0) >= a.options.slabs + 4;
           }) &&
           run_until([&] {
             receive();
             return received == sent;
           });
  }

  const support::Bytes kSmall = ip_packet("10.77.0.1", "10.77.0.2", support::Bytes(80));
  const support::Bytes kLarge = ip_packet("10.77.0.1", "10.77.0.3", support::Bytes(60000));
  LoopbackNetwork network;
  TimePoint now = monotonic_now();
  Host a{network, 1, {2, 3}};
  Host b{network, 2, {1}};
  Host c{network, 3, {1}};
};

// Each of B's packets lies in a slab that C's fill, and is never acknowledged.
TEST_F(DeadPeerTest, ItPinsNoMoreThanItsShareOfSlabs) {
  ASSERT_TRUE(grow_credits_of_b());
  network.partition(Host::underlay(1), Host::underlay(2));
  constexpr std::uint32_t kRounds = 80;
  constexpr std::uint32_t kLargeARound = 5;  // fill more than a slab
  std::uint32_t at_c = 0;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    for (std::uint32_t i = 0; i < kLargeARound; ++i) ASSERT_TRUE(a.tun().send(kLarge));
    ASSERT_TRUE(a.tun().send(kSmall));
    ASSERT_TRUE(run_until([&] {
      while (c.tun().receive()) ++at_c;
      return at_c == round * kLargeARound;
    })) << "round "
        << round << a.counters();
  }
  EXPECT_EQ(a.counter(Counter::TxStallMemory), 0U);
  // Nothing was lost: what B did not get went out, or waits.
  network.heal(Host::underlay(1), Host::underlay(2));
  std::uint32_t at_b = 0;
  EXPECT_TRUE(run_until([&] {
    while (b.tun().receive()) ++at_b;
    return at_b == kRounds;
  })) << at_b
      << a.counters();
}

}  // namespace
}  // namespace ipoverbs::transport
