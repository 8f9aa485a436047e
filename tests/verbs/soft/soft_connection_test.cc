// Connections of the software device through the seam, on simulated wires: the connection manager,
// the workers and the queue pairs together.

#include <cerrno>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/verbs/soft/soft_rig.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using sim::as_data;
using sim::SimDevice;
using sim::SimPair;

template <class Action>
int error_of(Action action) {
  try {
    action();
  } catch (const SystemError& error) {
    return error.code().value();
  }
  return 0;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class SoftConnectionOver : public testing::TestWithParam<bool> {};

TEST_P(SoftConnectionOver, ConnectsCarriesDataAndDisconnects) {
  SimPair pair(GetParam());
  pair.request();
  EXPECT_EQ(pair.a.seen(), "route resolved");
  EXPECT_EQ(pair.b.seen(), "connect request");
  ASSERT_EQ(pair.b.data.size(), kConnectPrivateData);
  EXPECT_EQ(text(pair.b.data).substr(0, 5), "hello");
  EXPECT_EQ(pair.b.connection->remote().address, pair.a.local.address);

  pair.b.create_queue_pair();
  pair.b.post_receive(3);
  pair.b.connection->accept(as_data("welcome"));
  pair.run();
  EXPECT_EQ(pair.a.seen(), "established");
  EXPECT_EQ(pair.b.seen(), "established");
  ASSERT_EQ(pair.a.data.size(), kAcceptPrivateData);
  EXPECT_EQ(text(pair.a.data).substr(0, 7), "welcome");

  pair.a.send(1, "a message");
  EXPECT_EQ(pair.a.posted, 0);
  pair.run();
  ASSERT_EQ(pair.a.completions.size(), 1U);
  EXPECT_EQ(pair.a.completions[0].status, IBV_WC_SUCCESS);
  ASSERT_EQ(pair.b.completions.size(), 1U);
  EXPECT_EQ(pair.b.completions[0].byte_len, 9U);
  EXPECT_EQ(pair.b.text_at(3, 9), "a message");

  pair.b.post_receive(4);
  pair.a.connection->disconnect();
  pair.run();
  EXPECT_EQ(pair.a.seen(), "disconnected");
  EXPECT_EQ(pair.b.seen(), "disconnected");
  ASSERT_EQ(pair.b.completions.size(), 2U);
  EXPECT_EQ(pair.b.completions[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(pair.b.completions[1].wr_id, 4U);
  pair.a.connection->disconnect();  // harmless
  pair.run();
  EXPECT_EQ(pair.a.seen(), "");
}
INSTANTIATE_TEST_SUITE_P(Family, SoftConnectionOver, testing::Bool(),
                         [](const auto& v6) { return v6.param ? "IPv6" : "IPv4"; });

TEST(SoftConnection, SaysWhatItIs) {
  SimPair pair;
  pair.connect();
  for (const SimDevice* device : {&pair.a, &pair.b}) {
    const QueuePairAttributes attributes = device->connection->attributes();
    EXPECT_EQ(attributes.number.value(), device->connection->queue_pair()->qp_num);
    EXPECT_EQ(attributes.path_mtu, PathMtu(1024));
    EXPECT_EQ(attributes.ack_timeout, ConnectionTimers{}.ack_timeout);
    EXPECT_EQ(attributes.min_rnr_timer, ConnectionTimers{}.min_rnr_timer);
  }
  EXPECT_EQ(pair.a.connection->remote(), (Endpoint{pair.b.local.address, SimDevice::kPort, 0}));
  EXPECT_GE(pair.b.connection->remote().port, 49152);
}

TEST(SoftConnection, IsRefusedWhereNobodyListens) {
  SimPair pair;
  pair.a.connection =
      pair.a.connections.dial({.endpoint = {pair.b.local.address, 1, 0}, .by_gid = false}, {});
  pair.run();
  pair.a.create_queue_pair();
  pair.a.connection->connect({});
  pair.run();
  EXPECT_EQ(pair.a.seen(), "route resolved, rejected 8");
  EXPECT_EQ(pair.a.detail, "nobody listens on that port (reject reason 8)");
  EXPECT_EQ(pair.b.seen(), "");
}

TEST(SoftConnection, RejectCarriesPrivateData) {
  SimPair pair;
  pair.request();
  pair.b.connection->reject(as_data("no room"));
  pair.run();
  EXPECT_EQ(pair.a.seen(), "route resolved, rejected 28");
  EXPECT_EQ(pair.a.data.size(), kRejectPrivateData);
  EXPECT_EQ(text(pair.a.data).substr(0, 7), "no room");
}

TEST(SoftConnection, RequestThatNobodyTakesIsRejected) {
  SimPair pair;
  pair.b.keep_incoming = false;
  pair.request();
  EXPECT_EQ(pair.a.seen(), "route resolved, rejected 28");
}

TEST(SoftConnection, DestroyedBeforeTheAnswerTellsTheListener) {
  SimPair pair;
  pair.request();
  pair.a.connection.reset();
  pair.run();
  EXPECT_EQ(pair.b.seen(), "connect request, failed -104");
  EXPECT_EQ(pair.b.detail, "the other side has waited too long (reject reason 4)");
  EXPECT_EQ(error_of([&] { pair.b.create_queue_pair(); }), EINVAL);
  EXPECT_EQ(pair.a.worker.engine().find(QpNumber(0x10)), nullptr);
}

TEST(SoftConnection, AcceptingWhatIsAlreadyGivenUpIsNoErrorAndFails) {
  SimPair pair;
  pair.b.accept_at_once = true;
  pair.a.dial(pair.b.local.address);
  pair.a.connections.process_events(pair.a);
  pair.a.create_queue_pair();
  pair.a.connection->connect({});
  pair.a.connection.reset();  // REQ and REJ arrive together
  pair.run();
  EXPECT_EQ(pair.b.seen(), "connect request, failed -104");
}

TEST(SoftConnection, DestroyedWhenEstablishedDisconnectsTheOther) {
  SimPair pair;
  pair.connect();
  pair.b.seen();
  pair.a.connection.reset();
  pair.run();
  EXPECT_EQ(pair.b.seen(), "disconnected");
  EXPECT_EQ(pair.a.worker.engine().find(QpNumber(0x10)), nullptr);
}

TEST(SoftConnection, DestroyedInItsOwnEventIsGone) {
  class Destroyer : public EventHandler {
   public:
    explicit Destroyer(SimDevice& d) : device(d) {}
    void on_event(Event& event) override {
      EXPECT_EQ(event.connection, device.connection.get());
      device.connection.reset();
      ++events;
    }
    SimDevice& device;
    int events = 0;
  };
  SimPair pair;
  pair.connect();
  Destroyer destroyer(pair.b);
  pair.a.connection->disconnect();
  pair.clock.advance_to(pair.clock.now() + 1ms);
  EXPECT_EQ(pair.b.connections.process_events(destroyer), 1);
  EXPECT_EQ(destroyer.events, 1);
  pair.run();
  EXPECT_EQ(pair.a.seen(), "route resolved, established, disconnected");
}

TEST(SoftConnection, PendingEventsGoWithTheirConnection) {
  SimPair pair;
  pair.a.dial(pair.b.local.address);
  EXPECT_TRUE(pair.a.woken);
  pair.a.connection.reset();
  pair.run();
  EXPECT_EQ(pair.a.seen(), "");
}

TEST(SoftConnection, DataEstablishesWhereTheReadyIsLost) {
  // The RTU is the dialler's second message; nothing after its first gets through.
  SimPair pair;
  pair.request();
  pair.b.management_wire.limit_buffer(0);
  pair.b.create_queue_pair();
  pair.b.post_receive(0);
  pair.b.connection->accept({});
  pair.run();
  EXPECT_EQ(pair.a.seen(), "route resolved, established");
  EXPECT_EQ(pair.b.seen(), "connect request");
  pair.a.send(1, "data");
  pair.run();
  EXPECT_EQ(pair.b.seen(), "established");
  EXPECT_EQ(pair.b.text_at(0, 4), "data");
}

TEST(SoftConnection, SilenceIsAFailure) {
  SimPair pair;
  pair.b.management_wire.limit_buffer(0);
  pair.request();
  pair.run(60s);
  EXPECT_EQ(pair.a.seen(), "route resolved, failed -110");
  EXPECT_EQ(pair.a.detail, "no answer");
}

TEST(SoftConnection, ConnectsThroughLoss) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    FaultPlan plan = parse_fault_plan("out:drop=0.2,corrupt=0.1,duplicate=0.2 in:drop=0.1");
    plan.seed = seed;
    SimPair pair(false, plan);
    pair.request();
    pair.run(10s);
    ASSERT_NE(pair.b.connection, nullptr) << seed;
    pair.b.create_queue_pair();
    pair.b.post_receive(0);
    pair.b.connection->accept({});
    pair.run(10s);
    EXPECT_EQ(pair.a.seen(), "route resolved, established") << seed;
    EXPECT_EQ(pair.b.seen(), "connect request, established") << seed;
    pair.a.connection.reset();
    pair.run(10s);
    EXPECT_EQ(pair.b.seen(), "disconnected") << seed;
  }
}

TEST(SoftConnection, BothDialAtOnceAndHaveTwoConnections) {
  SimPair pair;
  pair.a.connections.listen(SimDevice::kPort);
  pair.a.dial(pair.b.local.address);
  pair.b.dial(pair.a.local.address);
  pair.run();
  const auto dialled_a = std::move(pair.a.connection);
  const auto dialled_b = std::move(pair.b.connection);
  for (const auto& [device, dialled] :
       {std::pair(&pair.a, dialled_a.get()), std::pair(&pair.b, dialled_b.get())}) {
    dialled->create_queue_pair(
        {.completion_queue = &device->completion_queue, .send_depth = 1, .receive_depth = 1});
    dialled->connect({});
  }
  pair.run();
  for (SimDevice* device : {&pair.a, &pair.b}) {
    ASSERT_NE(device->connection, nullptr);
    device->create_queue_pair();
    device->connection->accept({});
  }
  pair.run();
  for (SimDevice* device : {&pair.a, &pair.b}) {
    EXPECT_EQ(device->seen(), "route resolved, connect request, established, established");
  }
}

TEST(SoftConnection, FailedQueuePairIsTold) {
  SimPair pair;
  pair.connect();
  pair.a.seen();
  pair.b.seen();
  pair.a.send(1, std::string(SimDevice::kSlot, 'x'));
  pair.a.send(2, "and");
  pair.a.send(3, "no more receives");
  pair.b.data_wire.connect(pair.b.data_wire, pair.b.local);  // its answers are lost
  pair.run(10s);
  EXPECT_EQ(pair.a.seen(),
            fmt::format("queue pair failed {}", std::to_underlying(IBV_WC_RETRY_EXC_ERR)));
}

TEST(SoftConnection, ThingsOutOfTurnFail) {
  SimPair pair;
  pair.a.dial(pair.b.local.address);
  EXPECT_EQ(error_of([&] { pair.a.create_queue_pair(); }), EINVAL) << "not resolved";
  pair.run();
  EXPECT_EQ(error_of([&] { pair.a.connection->connect({}); }), EINVAL) << "no queue pair";
  EXPECT_EQ(error_of([&] { static_cast<void>(pair.a.connection->attributes()); }), EINVAL);
  pair.a.create_queue_pair();
  EXPECT_EQ(error_of([&] { pair.a.create_queue_pair(); }), EINVAL) << "there is one";
  EXPECT_EQ(error_of([&] { pair.a.connection->accept({}); }), EINVAL) << "dialled";
  EXPECT_EQ(error_of([&] { pair.a.connection->reject({}); }), EINVAL);
  pair.a.connection->connect({});
  EXPECT_EQ(error_of([&] { pair.a.connection->connect({}); }), EINVAL) << "twice";
  pair.run();
  EXPECT_EQ(error_of([&] { pair.b.connection->accept({}); }), EINVAL) << "no queue pair";
  EXPECT_EQ(error_of([&] { pair.b.connection->connect({}); }), EINVAL) << "came in";
  EXPECT_EQ(error_of([&] { pair.b.connections.listen(SimDevice::kPort); }), EADDRINUSE);
}

TEST(SoftConnection, TooMuchPrivateDataHarmsNothing) {
  SimPair pair;
  const std::string much(256, 'm');
  const auto all = as_data(much);
  pair.a.dial(pair.b.local.address);
  pair.run();
  pair.a.create_queue_pair();
  EXPECT_EQ(error_of([&] { pair.a.connection->connect(all.first(57)); }), EINVAL);
  EXPECT_EQ(error_of([&] { pair.a.connection->connect(all.first(56)); }), 0);
  pair.run();
  pair.b.create_queue_pair();
  EXPECT_EQ(error_of([&] { pair.b.connection->reject(all.first(149)); }), EINVAL);
  EXPECT_EQ(error_of([&] { pair.b.connection->accept(all.first(197)); }), EINVAL);
  EXPECT_EQ(error_of([&] { pair.b.connection->accept(all.first(196)); }), 0);
  pair.run();
  EXPECT_EQ(pair.a.seen(), "route resolved, established");
}

TEST(SoftConnection, QueuePairsHaveLimits) {
  SimPair pair;
  pair.a.dial(pair.b.local.address);
  pair.run();
  const QueuePairConfig good{
      .completion_queue = &pair.a.completion_queue, .send_depth = 1, .receive_depth = 1};
  for (const auto& spoil : std::vector<void (*)(QueuePairConfig&)>{
           [](QueuePairConfig& c) { c.completion_queue = nullptr; },
           [](QueuePairConfig& c) { c.send_depth = 0; },
           [](QueuePairConfig& c) { c.send_depth = 65; },
           [](QueuePairConfig& c) { c.receive_depth = 0; },
           [](QueuePairConfig& c) { c.receive_depth = 65; },
           [](QueuePairConfig& c) { c.send_sge = 0; },
           [](QueuePairConfig& c) { c.send_sge = kMaxSendSge + 1; },
       }) {
    QueuePairConfig bad = good;
    spoil(bad);
    EXPECT_EQ(error_of([&] { pair.a.connection->create_queue_pair(bad); }), EINVAL);
  }
  EXPECT_EQ(error_of([&] { pair.a.connection->create_queue_pair(good); }), 0);
}

TEST(SoftConnection, OtherAddressesCannotBeDialled) {
  SimPair pair;
  const auto dial = [&](const char* address, bool by_gid) {
    return error_of([&] {
      static_cast<void>(pair.a.connections.dial(
          {.endpoint = {*IpAddress::parse(address), 1, 0}, .by_gid = by_gid}, {}));
    });
  };
  EXPECT_EQ(dial("2001:db8::2", false), EAFNOSUPPORT);
  EXPECT_EQ(dial("fe80::2", true), EAFNOSUPPORT);
}

TEST(SoftConnection, FailsWithoutARoute) {
  SimPair pair;
  pair.a.no_route = ENETUNREACH;
  pair.a.dial(pair.b.local.address);
  pair.run();
  EXPECT_EQ(pair.a.seen(), "failed -101");
  EXPECT_EQ(pair.a.detail, "no route: Network is unreachable");
}

// A way may take less than the interface, and less than it did: either end sees its own.
TEST(SoftConnection, TheRouteNarrowsThePathMtu) {
  for (const bool at_dialler : {true, false}) {
    SimPair pair;
    (at_dialler ? pair.a : pair.b).route_mtu = PathMtu(256);
    pair.connect();
    EXPECT_EQ(pair.a.connection->attributes().path_mtu, PathMtu(256));
    EXPECT_EQ(pair.b.connection->attributes().path_mtu, PathMtu(256));
  }
}

TEST(SoftConnection, AsksForLessWhenThePathMtuIsTooMuch) {
  SimPair pair(false, {}, PathMtu(4096));
  pair.connect();
  EXPECT_EQ(pair.a.seen(), "route resolved, established");
  EXPECT_EQ(pair.a.connection->attributes().path_mtu, PathMtu(1024));
  EXPECT_EQ(pair.b.connection->attributes().path_mtu, PathMtu(1024));
  pair.a.send(1, std::string(SimDevice::kSlot, 'x'));
  pair.run();
  EXPECT_EQ(pair.b.text_at(0, 3), "xxx");
  EXPECT_EQ(pair.a.connections.manager().size(), 1U) << "what was rejected is forgotten";
}

TEST(SoftConnection, TakesReceivesFromASharedQueue) {
  SimPair pair;
  pair.request();
  pair.b.create_sharing_queue_pair();
  pair.b.post_receive(7, true);
  EXPECT_EQ(pair.b.posted, 0);
  pair.b.connection->accept({});
  pair.run();
  pair.a.send(1, "shared");
  pair.run();
  EXPECT_EQ(pair.b.text_at(7, 6), "shared");
  pair.b.post_receive(8, true);
  pair.b.completions.clear();
  pair.a.connection.reset();
  pair.run();
  EXPECT_TRUE(pair.b.completions.empty()) << "what is shared is not flushed";
}

TEST(SoftConnection, TrafficClassGoesToBothSides) {
  SimPair pair;
  pair.a.dial(pair.b.local.address, 0x68);
  pair.run();
  pair.a.create_queue_pair();
  pair.a.connection->connect({});
  pair.run();
  pair.b.create_queue_pair();
  pair.b.connection->accept({});
  pair.run();
  for (const SimDevice* device : {&pair.a, &pair.b}) {
    const auto* qp = static_cast<const QueuePair*>(device->connection->queue_pair());
    EXPECT_EQ(qp->path().traffic_class(), 0x68 | 0x02);  // ECN: ECT(0)
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
