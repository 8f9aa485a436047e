// Two nodes on the in-memory device.
#include "transport/node.h"

#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/node_rig.h"
#include "transport/credits.h"
#include "transport/hello.h"

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::ip_packet;
using support::LoopbackNetwork;
using support::to_bytes;
using test::Host;
using test::kPing;
using test::kPong;
using test::NodeTest;

TEST_F(NodeTest, CarriesAPacketEachWay) {
  start_both();
  ASSERT_TRUE(connect());
  EXPECT_EQ(cross(a, b, kPing), kPing);
  EXPECT_EQ(cross(b, a, kPong), kPong);
  const auto six = ip_packet("fd77::1", "fd77::2", to_bytes("six"));
  EXPECT_EQ(cross(a, b, six), six);
  EXPECT_TRUE(counts(a, Counter::TunRxPackets, 2U));
  EXPECT_TRUE(counts(a, Counter::PeerTxPackets, 2U));
  EXPECT_TRUE(counts(b, Counter::TunTxPackets, 2U));
  EXPECT_TRUE(run_until([&] { return a.peer(0, now).tx_packets == 2; }));
  EXPECT_TRUE(run_until([&] { return b.peer(0, now).rx_packets == 2; }));
  EXPECT_TRUE(run_until([&] { return b.peer(0, now).tx_packets == 1; }));
}

TEST_F(NodeTest, BothDialAndOneSessionStands) {
  start_both();
  ASSERT_TRUE(connect());
  // Nothing flaps afterwards.
  const TimePoint end = now + 3s;
  run_until([&] { return now >= end; });
  EXPECT_EQ(network.queue_pairs(Host::underlay(1), Host::underlay(2)).size(), 1U);
  EXPECT_EQ(network.queue_pairs(Host::underlay(2), Host::underlay(1)).size(), 1U);
  EXPECT_EQ(a.peer(0, now).sessions.at(0).established_count, 1U);
  EXPECT_EQ(b.peer(0, now).sessions.at(0).established_count, 1U);
}

TEST_F(NodeTest, TheLargestPacketCrosses) {
  a.options.mtu = b.options.mtu = IpMtu(65535);
  start_both();
  ASSERT_TRUE(connect());
  support::Bytes payload(65535 - 20);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7 + 3);
  const auto packet = ip_packet("10.77.0.1", "10.77.0.2", payload);
  EXPECT_EQ(cross(a, b, packet), packet);
}

TEST_F(NodeTest, AManyPacketBurstArrivesInOrderAndNeverFindsNoReceive) {
  start_both();
  ASSERT_TRUE(connect());
  constexpr std::uint32_t kPackets = 3000;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  const bool all = run_until(
      [&] {
        // A host's socket buffer holds a few hundred.
        for (; sent < kPackets && sent - received < 100; ++sent) {
          support::Bytes payload(4 + sent * 37 % 3000);
          store(std::span(payload), 0, Be32(sent));
          if (!a.tun().send(ip_packet("10.77.0.1", "10.77.0.2", payload))) break;
        }
        while (auto packet = b.tun().receive()) {
          EXPECT_EQ(load<Be32>(std::span<const std::byte>(*packet), 20).value(), received);
          ++received;
        }
        return received == kPackets;
      },
      0ms);
  EXPECT_TRUE(all) << received << a.counters() << "\n" << b.counters();
  EXPECT_EQ(network.rnr_count(), 0U);
  EXPECT_TRUE(counts(a, Counter::PeerTxPackets, kPackets));
  EXPECT_TRUE(counts(a, Counter::TunRxPackets, kPackets));
  // Packed and chained: fewer messages than packets, fewer doorbells than messages or as many.
  EXPECT_LT(a.counter(Counter::PeerTxMessages), kPackets);
  EXPECT_LE(a.counter(Counter::PeerTxDoorbells),
            a.counter(Counter::PeerTxMessages) + a.counter(Counter::PeerTxGrants));
  // A doorbell is in one bucket of packets and in one of bytes, unless it carried grants alone.
  const DoorbellCounts doorbells = a.node().status(now).doorbells;
  const auto with_packets = std::reduce(doorbells.packets.begin(), doorbells.packets.end());
  EXPECT_EQ(with_packets, std::reduce(doorbells.bytes.begin(), doorbells.bytes.end()));
  EXPECT_GT(with_packets, 0U);
  EXPECT_LE(with_packets, a.counter(Counter::PeerTxDoorbells));
  EXPECT_GE(with_packets + a.counter(Counter::PeerTxGrants), a.counter(Counter::PeerTxDoorbells));
}

// One packet a message and the smallest windows: a grant for every four packets.
TEST_F(NodeTest, TheGrantsOfAFullLoadAreNoFlood) {
  for (Host* host : {&a, &b}) {
    host->options.receive_buffers = 8;
    host->options.packets_per_message = 1;
  }
  start_both();
  ASSERT_TRUE(connect());
  constexpr std::uint32_t kPackets = 20000;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  EXPECT_TRUE(run_until(
      [&] {
        while (sent < kPackets && sent - received < 200 && a.tun().send(kPing)) ++sent;
        while (b.tun().receive()) ++received;
        return received == kPackets;
      },
      0ms, 200000));
  EXPECT_GT(a.counter(Counter::PeerRxGrants), kControlBurst);
  EXPECT_EQ(a.peer(0, now).sessions.at(0).established_count, 1U);
  EXPECT_EQ(b.peer(0, now).sessions.at(0).established_count, 1U);
}

TEST_F(NodeTest, APeerThatWasStartedAnewReplacesItsOldSession) {
  start_both();
  ASSERT_TRUE(connect());
  network.partition(Host::underlay(1), Host::underlay(2));
  b.kill();  // its disconnect does not get through
  network.heal(Host::underlay(1), Host::underlay(2));
  b.start(3, now);
  ASSERT_TRUE(run_until([&] {
    return connected(a, now) && connected(b, now) &&
           a.peer(0, now).sessions.at(0).established_count == 2;
  }));
  EXPECT_EQ(cross(a, b, kPing), kPing);
}

TEST_F(NodeTest, APeerStartedLateIsFound) {
  a.start(1, now);
  const TimePoint late = now + 20s;
  ASSERT_TRUE(run_until([&] { return now >= late; }, 10ms));
  EXPECT_NE(a.peer(0, now).state, "connected");
  EXPECT_FALSE(a.peer(0, now).sessions.at(0).last_error.empty());
  b.start(2, now);
  EXPECT_TRUE(connect());
}

TEST_F(NodeTest, PacketsForAPeerThatIsDownAreCounted) {
  a.start(1, now);
  a.tun().send(kPing);
  EXPECT_TRUE(run_until([&] { return a.counter(Counter::TxDropPeerDown) == 1; }));
}

TEST_F(NodeTest, EveryTransmitDropHasItsCounter) {
  a.options.multicast = Multicast::Off;
  start_both();
  ASSERT_TRUE(connect());
  support::Bytes short_packet = kPing;
  short_packet.resize(12);
  a.tun().send(ip_packet("10.77.0.1", "198.51.100.1", {}));
  a.tun().send(ip_packet("10.77.0.1", "10.77.0.1", {}));
  a.tun().send(ip_packet("10.77.0.1", "224.0.0.5", {}));
  a.tun().send(ip_packet("fd77::1", "ff02::1", {}));
  a.tun().send(ip_packet("10.77.0.1", "255.255.255.255", {}));
  a.tun().send(short_packet);
  a.tun().send({});
  EXPECT_TRUE(counts(a, Counter::TxDropNoRoute, 1U));
  EXPECT_TRUE(counts(a, Counter::TxDropOwnAddress, 1U));
  EXPECT_TRUE(counts(a, Counter::TxDropMulticast, 3U));
  EXPECT_TRUE(counts(a, Counter::TxDropMalformed, 2U));
  EXPECT_TRUE(counts(a, Counter::PeerTxPackets, 0U));
}

TEST_F(NodeTest, APacketAboveThePeersMtuIsDroppedAndCounted) {
  b.options.mtu = IpMtu(1500);
  start_both();
  ASSERT_TRUE(connect());
  auto too_big = ip_packet("10.77.0.1", "10.77.0.2", support::Bytes(1481));
  store(std::span(too_big), 6, Be16(0x4000));  // DF
  a.tun().send(too_big);
  const auto fits = ip_packet("10.77.0.1", "10.77.0.2", support::Bytes(1480));
  EXPECT_EQ(cross(a, b, fits), fits);
  EXPECT_TRUE(counts(a, Counter::TxDropTooBig, 1U));
  EXPECT_EQ(a.peer(0, now).mtu, IpMtu(1500));
}

TEST_F(NodeTest, ASourceThatIsNotThePeersIsDroppedAndCounted) {
  start_both();
  ASSERT_TRUE(connect());
  std::uint64_t bad = 0;
  for (const char* source :
       {"10.77.0.2", "10.77.0.3", "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"}) {
    a.tun().send(ip_packet(source, "10.77.0.2", to_bytes("x")));
    ++bad;
  }
  for (const char* source : {"fd77::3", "::1", "::", "ff02::1", "fe80::9", "::ffff:10.77.0.1"}) {
    a.tun().send(ip_packet(source, "fd77::2", to_bytes("x")));
    ++bad;
  }
  EXPECT_EQ(cross(a, b, kPing), kPing);
  EXPECT_TRUE(counts(b, Counter::RxDropBadSource, bad));
  EXPECT_FALSE(b.tun().receive());
}

TEST_F(NodeTest, ADeviceThatIsRemovedAndComesBackCarriesAgain) {
  start_both();
  ASSERT_TRUE(connect());
  network.remove_device(Host::underlay(1));
  ASSERT_TRUE(run_until([&] { return a.node().status(now).device_state != "up"; }));
  ASSERT_TRUE(run_until([&] { return connected(a, now) && connected(b, now); }));
  EXPECT_EQ(cross(a, b, kPing), kPing);
  EXPECT_EQ(network.live_devices(), 2U);
}

TEST_F(NodeTest, ABrokenQueuePairIsReplaced) {
  start_both();
  ASSERT_TRUE(connect());
  network.break_queue_pair(network.queue_pairs(Host::underlay(1), Host::underlay(2)).front());
  ASSERT_TRUE(run_until([&] {
    return a.peer(0, now).sessions.at(0).established_count == 2 && connected(a, now) &&
           connected(b, now);
  }));
  EXPECT_EQ(cross(a, b, kPing), kPing);
}

// What is granted and what Control messages may use is posted, from the first session on.
TEST_F(NodeTest, EverySessionHasTheReceivesThatItIsPromised) {
  start_both();
  ASSERT_TRUE(connect());
  const std::size_t promised = a.options.receive_buffers + kSessionReceives;
  for (const auto& [near, far] : {std::pair(1, 2), std::pair(2, 1)}) {
    const auto number = network.queue_pairs(Host::underlay(near), Host::underlay(far)).front();
    EXPECT_TRUE(run_until([&] { return network.posted_receives(number) == promised; }))
        << network.posted_receives(number);
  }
}

TEST_F(NodeTest, TheLeastSendDepthCarries) {
  a.options.send_depth = b.options.send_depth = 8;
  a.options.signal_interval = b.options.signal_interval = 4;
  start_both();
  ASSERT_TRUE(connect());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cross(a, b, kPing), kPing);
}

TEST_F(NodeTest, NothingIsLeftWhenTheNodesAreGone) {
  start_both();
  ASSERT_TRUE(connect());
  for (int i = 0; i < 20; ++i) {
    network.break_queue_pair(network.queue_pairs(Host::underlay(1), Host::underlay(2)).front());
    const std::uint64_t wanted = static_cast<std::uint64_t>(i) + 2;
    ASSERT_TRUE(run_until([&] {
      return a.peer(0, now).sessions.at(0).established_count >= wanted && connected(a, now) &&
             connected(b, now);
    }));
  }
  a.kill();
  b.kill();
  EXPECT_EQ(network.live_objects(), 0U);
  EXPECT_EQ(network.live_devices(), 0U);
}

TEST_F(NodeTest, EachCreationThatFailsLeavesNothingBehind) {
  a.start(1, now);
  const std::uint64_t creations = network.creation_count();
  a.kill();
  ASSERT_GT(creations, 3U);
  for (std::uint64_t nth = 1; nth <= creations; ++nth) {
    network.fail_creation(nth);
    EXPECT_ANY_THROW(a.start(1, now)) << nth;
    EXPECT_EQ(network.live_objects(), 0U) << nth;
    EXPECT_EQ(network.live_devices(), 0U) << nth;
  }
}

// Both times far below the worker's longest tick, or its dead time no more than that tick, and
// still with room for a machine that is slow: one that stands still a few times is forgiven. Where
// ticks come too late, it is thirty times.
TEST_F(NodeTest, AnIdleSessionStandsWhateverTheKeepalive) {
  for (Host* host : {&a, &b}) {
    host->options.keepalive = 10ms;
    host->options.dead_time = 150ms;
  }
  start_both();
  ASSERT_TRUE(connect());
  const TimePoint end = monotonic_now() + 2s;
  ASSERT_TRUE(run_until([&] { return monotonic_now() >= end; }, 1ms, 1000000));
  EXPECT_LE(a.peer(0, now).sessions.at(0).established_count, 6U);
  EXPECT_LE(b.peer(0, now).sessions.at(0).established_count, 6U);
}

TEST_F(NodeTest, ADeadPeerIsNoticedByItsSilence) {
  a.options.dead_time = 200ms;
  start_both();
  ASSERT_TRUE(connect());
  network.partition(Host::underlay(1), Host::underlay(2));
  // Workers have clocks of their own: the test's runs beside, a millisecond for each.
  EXPECT_TRUE(run_until(
      [&] {
        return a.peer(0, now).sessions.at(0).last_error.find("nothing was received") !=
               std::string::npos;
      },
      1ms, 200000));
}

// What the shared receive queue can hold (0: there is none), workers of a and of b.
struct OtherDevices : testing::TestWithParam<std::tuple<std::uint32_t, unsigned, unsigned>> {};

// Every kind of device carries, with every number of workers at either end.
TEST_P(OtherDevices, CarryBothWays) {
  const auto [max_srq_wr, workers_a, workers_b] = GetParam();
  LoopbackNetwork network;
  support::LoopbackOptions device;
  device.capabilities.max_srq_wr = max_srq_wr;
  device.capabilities.max_send_sge = 2;
  Host a(network, 1, {2}, workers_a, device);
  Host b(network, 2, {1}, workers_b, device);
  TimePoint now = monotonic_now();
  a.start(7, now);
  b.start(5, now);
  const auto all_up = [&](Host& host) {
    const PeerStatus peer = host.peer(0, now);
    if (peer.sessions.size() != std::max(workers_a, workers_b)) return false;
    return std::ranges::all_of(peer.sessions, [](const auto& s) {
      return s.state == "established" && s.send_credits > 0;
    });
  };
  const auto run = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 20000; ++i) {
      a.node().process(now);
      b.node().process(now);
      if (done()) return true;
      now += 1ms;
      support::wait_for_any({a.node().event_fd(), b.node().event_fd()});
    }
    return false;
  };
  ASSERT_TRUE(run([&] { return all_up(a) && all_up(b); }));
  // 200 packets each way through the first queue, of many flows.
  std::size_t sent = 0;
  std::size_t at_a = 0;
  std::size_t at_b = 0;
  EXPECT_TRUE(run([&] {
    for (; sent < 200 && sent - std::min(at_a, at_b) < 50; ++sent) {
      const auto payload = to_bytes(std::string(8, static_cast<char>(sent)));
      a.tun().send(ip_packet("10.77.0.1", "10.77.0.2", payload));
      b.tun().send(ip_packet("10.77.0.2", "10.77.0.1", payload));
    }
    for (std::size_t q = 0; q < workers_a; ++q) {
      while (a.tun(q).receive()) ++at_a;
    }
    for (std::size_t q = 0; q < workers_b; ++q) {
      while (b.tun(q).receive()) ++at_b;
    }
    return at_a == 200 && at_b == 200;
  })) << at_a
      << " " << at_b << a.counters() << "\n"
      << b.counters();
  EXPECT_EQ(network.rnr_count(), 0U);
  if (max_srq_wr == 0) return;
  std::uint64_t granted = 0;
  for (const SessionStatus& s : a.peer(0, now).sessions) granted += s.send_credits;
  EXPECT_LE(granted, std::uint64_t{workers_b} * max_srq_wr);
}

// 44: the promises to three sessions, and 8 to share.
INSTANTIATE_TEST_SUITE_P(Node, OtherDevices,
                         testing::Combine(testing::Values(0U, 44U, 32768U), testing::Values(1U, 3U),
                                          testing::Values(1U, 2U)));

}  // namespace
}  // namespace ipoverbs::transport
