// The knobs: removal, partition, failing creations, weak devices, reported events.
#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/loopback_device.h"
#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

using verbs::EventKind;

struct LoopbackFaults : testing::Test {
  LoopbackNetwork network;
  Host a{network, kA};
  Host b{network, kB};
};

TEST_F(LoopbackFaults, RemovedDeviceIsSilentAndItsPeersAreToldOnce) {
  establish(a, b);
  ASSERT_EQ(b.receive(1), 0);
  network.remove_device(kB);
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  EXPECT_EQ(b.process(), Lines{"device removed"});
  EXPECT_EQ(b.qp()->state, IBV_QPS_RTS);
  EXPECT_EQ(b.send(1, "x"), 0);
  EXPECT_EQ(b.poll(), Lines{});
  network.remove_device(kB);
  network.report(kB, EventKind::PortDown, "too late");
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackFaults, RemovedDeviceRefusesEverything) {
  establish(a, b);
  network.remove_device(kB);
  EXPECT_EQ(error_of([&] { static_cast<void>(b.device->register_memory(b.memory)); }), ENODEV);
  EXPECT_EQ(error_of([&] { static_cast<void>(b.device->create_completion_queue(1)); }), ENODEV);
  EXPECT_EQ(error_of([&] { static_cast<void>(b.device->create_shared_receive_queue(1)); }), ENODEV);
  EXPECT_EQ(error_of([&] { b.device->listen(1); }), ENODEV);
  EXPECT_EQ(error_of([&] { b.dial(kA); }), ENODEV);
}

TEST_F(LoopbackFaults, RemovalRejectsWhoIsConnecting) {
  b.device->listen(kPort);
  a.dial(kB);
  a.process();
  a.create_queue_pair();
  a.connection->connect({});
  network.remove_device(kB);
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
  EXPECT_EQ(b.process(), Lines{"device removed"});
}

TEST_F(LoopbackFaults, DeviceComesBackAtItsAddress) {
  establish(a, b);
  network.remove_device(kB);
  Host again(network, kB);
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  a.connection.reset();
  establish(a, again);
  ASSERT_EQ(again.receive(1), 0);
  EXPECT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(again.poll(), Lines{"receive 1 of 1 bytes"});
  EXPECT_EQ(network.live_devices(), 3U);
}

TEST_F(LoopbackFaults, PartitionMakesDiallingHangUntilHealed) {
  b.device->listen(kPort);
  network.partition(kB, kA);
  a.dial(kB);
  EXPECT_EQ(a.process(), Lines{});
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{"route resolved"});
}

TEST_F(LoopbackFaults, DialGivenUpInAPartitionResolvesNothing) {
  network.partition(kA, kB);
  a.dial(kB);
  a.connection.reset();
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{});
}

TEST_F(LoopbackFaults, PartitionHoldsTheRequestUntilHealed) {
  b.device->listen(kPort);
  a.dial(kB);
  a.process();
  a.create_queue_pair();
  network.partition(kA, kB);
  a.connection->connect({});
  EXPECT_EQ(b.process(), Lines{});
  network.heal(kA, kB);
  EXPECT_EQ(b.process(), Lines{"connect request"});
}

TEST_F(LoopbackFaults, AttemptGivenUpInAPartitionIsNeverHeardOf) {
  b.device->listen(kPort);
  a.dial(kB);
  a.process();
  a.create_queue_pair();
  network.partition(kA, kB);
  a.connection->connect({});
  a.connection.reset();
  network.heal(kA, kB);
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackFaults, PartitionSilencesAnEstablishedConnectionUntilHealed) {
  establish(a, b);
  ASSERT_EQ(b.receive(1), 0);
  network.partition(kA, kB);
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(network.deliver(), 0U);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(b.poll(), Lines{});
  network.heal(kA, kB);
  EXPECT_EQ(a.poll(), Lines{"send 1"});
  EXPECT_EQ(b.poll(), Lines{"receive 1 of 1 bytes"});
  EXPECT_EQ(network.rnr_count(), 0U);
}

TEST_F(LoopbackFaults, PartitionOfTwoLeavesAThirdAlone) {
  Host c(network, *IpAddress::parse("192.0.2.3"));
  establish(a, c);
  network.partition(kA, kB);
  ASSERT_EQ(c.receive(1), 0);
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(a.poll(), Lines{"send 1"});
}

TEST_F(LoopbackFaults, WhoLeftDuringThePartitionIsMissedAfterIt) {
  establish(a, b);
  network.partition(kA, kB);
  ASSERT_EQ(a.send(1, "x"), 0);
  b.connection.reset();
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(a.poll(), Lines{});
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  EXPECT_EQ(a.poll(), Lines{fmt::format("1: status {}", +IBV_WC_WR_FLUSH_ERR)});
}

TEST_F(LoopbackFaults, AcceptorThatGaveUpDuringThePartitionRejectsAfterIt) {
  b.device->listen(kPort);
  a.dial(kB);
  a.process();
  a.create_queue_pair();
  a.connection->connect({});
  b.process();
  b.create_queue_pair();
  b.connection->accept({});
  network.partition(kA, kB);
  EXPECT_EQ(a.process(), Lines{"established"});
  b.connection.reset();
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
}

// Everything that a pair needs, from nothing.
void build_up(LoopbackNetwork& network) {
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
}

TEST(LoopbackCreation, EachOneCanFailAndNothingIsLeft) {
  LoopbackNetwork counting;
  build_up(counting);
  const std::uint64_t steps = counting.creation_count();
  EXPECT_EQ(steps, 8U);  // each end: region, completion queue, shared receive queue, queue pair
  for (std::uint64_t step = 1; step <= steps; ++step) {
    LoopbackNetwork network;
    network.fail_creation(step);
    EXPECT_EQ(error_of([&] { build_up(network); }), ENOMEM) << step;
    EXPECT_EQ(network.creation_count(), step - 1);
    EXPECT_EQ(network.live_objects(), 0U) << step;
    EXPECT_EQ(network.live_devices(), 0U) << step;
    EXPECT_EQ(error_of([&] { build_up(network); }), 0);
  }
}

TEST_F(LoopbackFaults, LiveObjectsAreCounted) {
  EXPECT_EQ(network.live_objects(), 6U);
  establish(a, b);
  EXPECT_EQ(network.live_objects(), 10U);
  EXPECT_EQ(network.live_devices(), 2U);
  a.connection.reset();
  EXPECT_EQ(network.live_objects(), 8U);
  b.connection.reset();
  a.region.reset();
  EXPECT_EQ(network.live_objects(), 5U);
}

TEST(LoopbackCapabilities, AreEnforced) {
  LoopbackOptions weak;
  weak.capabilities.max_srq_wr = 0;
  weak.capabilities.max_send_sge = 2;
  weak.capabilities.max_qp_wr = 8;
  weak.capabilities.max_cqe = 256;
  LoopbackNetwork network;
  Host a(network, kA, weak);
  const Host b(network, kB);
  EXPECT_FALSE(a.device->capabilities().has_srq());
  EXPECT_EQ(error_of([&] { static_cast<void>(a.device->create_shared_receive_queue(1)); }),
            EOPNOTSUPP);
  EXPECT_EQ(error_of([&] { static_cast<void>(a.device->create_completion_queue(257)); }), EINVAL);
  EXPECT_EQ(error_of([&] { static_cast<void>(a.device->create_completion_queue(0)); }), EINVAL);
  EXPECT_EQ(error_of([&] { static_cast<void>(a.device->register_memory({})); }), EINVAL);
  a.dial(kB);
  a.process();
  EXPECT_EQ(error_of([&] { a.create_queue_pair(9, 8, 2); }), EINVAL);
  EXPECT_EQ(error_of([&] { a.create_queue_pair(8, 9, 2); }), EINVAL);
  EXPECT_EQ(error_of([&] { a.create_queue_pair(8, 8, 3); }), EINVAL);
  EXPECT_EQ(error_of([&] { a.create_queue_pair(8, 8, 2); }), 0);
}

TEST(LoopbackCapabilities, PathMtuIsTheSmallerOne) {
  LoopbackOptions small;
  small.capabilities.active_mtu = verbs::PathMtu(1024);
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB, small);
  establish(a, b);
  EXPECT_EQ(a.connection->attributes().path_mtu, verbs::PathMtu(1024));
  EXPECT_EQ(b.connection->attributes().path_mtu, verbs::PathMtu(1024));
  EXPECT_EQ(a.connection->attributes().number.value(), a.qp()->qp_num);
}

TEST_F(LoopbackFaults, QueuePairsAreFoundByAddress) {
  EXPECT_EQ(network.queue_pairs(kA, kB).size(), 0U);
  establish(a, b);
  EXPECT_EQ(network.queue_pairs(kA, kB), std::vector{verbs::QpNumber(a.qp()->qp_num)});
  EXPECT_EQ(network.queue_pairs(kB, kA), std::vector{verbs::QpNumber(b.qp()->qp_num)});
}

TEST_F(LoopbackFaults, EventsCanBeReported) {
  establish(a, b);
  network.report(kA, EventKind::PortDown, "cable");
  network.report(verbs::QpNumber(a.qp()->qp_num), EventKind::AddressChanged, "moved");
  EXPECT_EQ(a.process(), (Lines{"port down", "address changed"}));
  EXPECT_EQ(a.qp()->state, IBV_QPS_RTS);
  network.report(verbs::QpNumber(a.qp()->qp_num), EventKind::QueuePairFailed, "fatal");
  EXPECT_EQ(a.process(), Lines{"queue pair failed"});
  EXPECT_EQ(a.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(b.process(), Lines{});
}

using LoopbackDeathTest = LoopbackFaults;

TEST_F(LoopbackDeathTest, DestroyingInTheWrongOrderIsAProgrammersError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  establish(a, b);
  EXPECT_DEATH(a.completions.reset(), "outlive their completion queue");
  EXPECT_DEATH(a.shared.reset(), "outlive their shared receive queue");
  EXPECT_DEATH(a.device.reset(), "outlive the device");
}

}  // namespace
}  // namespace ipoverbs::support
