// The rdma-core device against the kernel's rdma_rxe: connecting, being refused, parting.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/softroce/verbs_fixture.h"

namespace ipoverbs::verbs::test {
namespace {

using namespace std::chrono_literals;

class Connecting : public TwoSides {
 protected:
  // As far as the request's arrival; the new connection is in listener->incoming.
  void request(std::span<const std::byte> hello = {}) {
    out = dial();
    ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
    out->create_queue_pair(dialler->queues(true));
    out->connect(hello);
    ASSERT_TRUE(until([&] { return listener->saw(EventKind::ConnectRequest); }));
  }
};

bool starts_with(const std::vector<std::byte>& all, const std::vector<std::byte>& start) {
  return all.size() >= start.size() && std::equal(start.begin(), start.end(), all.begin());
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST_F(Connecting, CarriesPrivateDataBothWays) {
  const auto hello = bytes(kConnectPrivateData, 1);
  const auto answer = bytes(kAcceptPrivateData - 6, 2);
  ASSERT_NO_FATAL_FAILURE(connect(true, hello, answer));
  EXPECT_EQ(listener->last(EventKind::ConnectRequest).private_data, hello);
  EXPECT_EQ(in->remote().address, dialler->address.address);
  EXPECT_EQ(out->remote(), (Endpoint{listener->address.address, kPort, 0}));
  const auto& established = dialler->last(EventKind::Established);
  EXPECT_TRUE(starts_with(established.private_data, answer));
  ASSERT_EQ(established.private_data.size(), kAcceptPrivateData);
  EXPECT_TRUE(is_zero(std::span(established.private_data).last(6)));
}

TEST_F(Connecting, PadsAnEmptyRequestWithZeros) {
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_EQ(listener->last(EventKind::ConnectRequest).private_data,
            std::vector<std::byte>(kConnectPrivateData));
}

TEST_F(Connecting, SetsTheAttributesOnBothSides) {
  ASSERT_NO_FATAL_FAILURE(connect());
  for (const Connection* side : {out.get(), in.get()}) {
    const QueuePairAttributes attributes = side->attributes();
    EXPECT_EQ(attributes.number.value(), side->queue_pair()->qp_num);
    EXPECT_EQ(attributes.path_mtu, PathMtu(4096));  // of an interface with MTU 4500
    EXPECT_EQ(attributes.ack_timeout, ConnectionTimers{}.ack_timeout);
    EXPECT_EQ(attributes.min_rnr_timer, ConnectionTimers{}.min_rnr_timer);
    // The GID with the IPv4 address, not the link-local one at 0.
    EXPECT_NE(attributes.gid_index, 0);
  }
}

TEST_F(Connecting, ConnectsOverIpv6) {
  dialler = std::make_unique<Side>("fd77::1");
  listener = std::make_unique<Side>("fd77::2");
  listener->device->listen(kPort);
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_EQ(in->remote().address, dialler->address.address);
}

TEST_F(Connecting, PutsTheTrafficClassIntoTheQueuePair) {
  PathOptions path;
  path.traffic_class = 0x68;
  path.service_level = 3;  // RoCE has none: a warning
  out = dialler->device->dial({.endpoint = {listener->address.address, kPort, 0}}, path);
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out->create_queue_pair(dialler->queues(true));
  out->connect({});
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  in = std::move(listener->incoming.front());
  in->create_queue_pair(listener->queues(true));
  in->accept({});
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Established); }));
  for (const Connection* side : {out.get(), in.get()}) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(side->queue_pair(), &attr, IBV_QP_AV, &init), 0);
    EXPECT_EQ(attr.ah_attr.grh.traffic_class, 0x68);
  }
}

TEST_F(Connecting, RejectCarriesPrivateData) {
  const auto why = bytes(kRejectPrivateData, 3);
  ASSERT_NO_FATAL_FAILURE(request());
  listener->incoming.front()->reject(why);
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Rejected); }));
  EXPECT_EQ(dialler->last(EventKind::Rejected).private_data, why);
  EXPECT_EQ(dialler->last(EventKind::Rejected).connection, out.get());
  EXPECT_EQ(dialler->last(EventKind::Rejected).detail, "rejected by the far end's daemon");
}

TEST_F(Connecting, DroppedRequestIsRejected) {
  listener->answer = Answer::Drop;
  ASSERT_NO_FATAL_FAILURE(request());
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Rejected); }));
}

TEST_F(Connecting, TooMuchPrivateDataHarmsNothing) {
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out->create_queue_pair(dialler->queues(true));
  EXPECT_THROW(out->connect(bytes(kConnectPrivateData + 1, 1)), SystemError);
  out->connect({});
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  in = std::move(listener->incoming.front());
  in->create_queue_pair(listener->queues(true));
  EXPECT_THROW(in->reject(bytes(kRejectPrivateData + 1, 1)), SystemError);
  EXPECT_THROW(in->accept(bytes(kAcceptPrivateData + 1, 1)), SystemError);
  in->accept({});
  EXPECT_TRUE(until([&] { return dialler->saw(EventKind::Established); }));
}

TEST_F(Connecting, NobodyListensIsRejectedAtOnce) {
  listener.reset();
  out = dialler->device->dial({.endpoint = {*IpAddress::parse("10.77.0.2"), kPort, 0}}, {});
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out->create_queue_pair(dialler->queues(true));
  out->connect({});
  // Not after the connection manager's 70 s.
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Rejected); }));
  EXPECT_EQ(dialler->last(EventKind::Rejected).detail, "nobody listens on the port");
}

TEST_F(Connecting, NobodyAtTheAddressFails) {
  out = dialler->device->dial({.endpoint = {*IpAddress::parse("10.77.0.99"), kPort, 0}}, {});
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Failed); }, 10s));
  EXPECT_EQ(dialler->last(EventKind::Failed).connection, out.get());
  EXPECT_NE(dialler->last(EventKind::Failed).detail, "");
  EXPECT_EQ(dialler->events.size(), 1U);
}

TEST_F(Connecting, EmptyNeighbourTableCostsOneTimeout) {
  run("ip neigh flush dev v0");
  run("ip neigh flush dev v1");
  const TimePoint start = monotonic_now();
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_LT(monotonic_now() - start, 2s);
}

TEST_F(Connecting, UnroutableAddressIsRefusedOrFails) {
  try {
    out = dialler->device->dial({.endpoint = {*IpAddress::parse("203.0.113.1"), kPort, 0}}, {});
    EXPECT_TRUE(until([&] { return dialler->saw(EventKind::Failed); }));
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("203.0.113.1"), std::string::npos);
  }
}

TEST_F(Connecting, DisconnectIsSeenByBothOnce) {
  for (const bool dialler_parts : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(connect());
    dialler->events.clear();
    listener->events.clear();
    (dialler_parts ? out : in)->disconnect();
    ASSERT_TRUE(until([&] {
      return dialler->saw(EventKind::Disconnected) && listener->saw(EventKind::Disconnected);
    }));
    out->disconnect();
    in->disconnect();
    EXPECT_FALSE(
        until([&] { return dialler->events.size() + listener->events.size() > 2; }, 100ms));
  }
}

TEST_F(Connecting, DestructionIsSeenAsDisconnect) {
  for (const bool dialler_parts : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(connect());
    dialler->events.clear();
    listener->events.clear();
    (dialler_parts ? out : in).reset();
    Side& other = dialler_parts ? *listener : *dialler;
    ASSERT_TRUE(until([&] { return other.saw(EventKind::Disconnected); }));
    EXPECT_EQ(other.last(EventKind::Disconnected).connection, dialler_parts ? in.get() : out.get());
    out.reset();
    in.reset();
  }
}

// Destruction in every state that a dialler goes through blocks nobody and leaves the device
// usable.
TEST_F(Connecting, MayBeGivenUpInAnyState) {
  out = dial();  // resolving
  out.reset();
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out.reset();  // resolved
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->count(EventKind::RouteResolved) == 2; }));
  out->create_queue_pair(dialler->queues(true));
  out.reset();  // with a queue pair
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->count(EventKind::RouteResolved) == 3; }));
  out->create_queue_pair(dialler->queues(true));
  out->connect({});
  out.reset();  // the request is on its way
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  listener->incoming.clear();  // never answered
  ASSERT_NO_FATAL_FAILURE(connect());
}

TEST_F(Connecting, RequestThatWasTakenBackComesToAnEnd) {
  ASSERT_NO_FATAL_FAILURE(request());
  out.reset();
  in = std::move(listener->incoming.front());
  try {
    in->create_queue_pair(listener->queues(true));
    in->accept({});
  } catch (const SystemError&) {
    return;
  }
  EXPECT_TRUE(until([&] {
    return listener->saw(EventKind::Rejected) || listener->saw(EventKind::Failed) ||
           listener->saw(EventKind::Disconnected);
  }));
}

TEST_F(Connecting, HandlerMayDestroyConnectionsWithQueuedEvents) {
  // Three connections; the far end parts with all of them before the dialler looks.
  std::vector<std::unique_ptr<Connection>> outs;
  std::vector<std::unique_ptr<Connection>> ins;
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(connect());
    outs.push_back(std::move(out));
    ins.push_back(std::move(in));
  }
  ins.clear();
  ASSERT_TRUE(readable(dialler->device->event_fd(), 5s));
  std::this_thread::sleep_for(200ms);
  dialler->hook = [&](Event& event) {
    if (event.kind == EventKind::Disconnected) outs.clear();
  };
  ASSERT_TRUE(until([&] { return outs.empty(); }));
  EXPECT_EQ(dialler->count(EventKind::Disconnected), 1);
  EXPECT_FALSE(until([&] { return dialler->count(EventKind::Disconnected) > 1; }, 100ms));
  dialler->hook = nullptr;
  ASSERT_NO_FATAL_FAILURE(connect());
}

TEST_F(Connecting, FiftyReconnectsLeaveNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::size_t before = open_descriptors();
  const std::string resources = rdma_resources();
  for (int i = 0; i < 50; ++i) {
    auto& first = i % 2 == 0 ? out : in;
    auto& second = i % 2 == 0 ? in : out;
    Side& other = i % 2 == 0 ? *listener : *dialler;
    const int seen = other.count(EventKind::Disconnected);
    first.reset();
    ASSERT_TRUE(until([&] { return other.count(EventKind::Disconnected) > seen; }));
    second.reset();
    ASSERT_NO_FATAL_FAILURE(connect());
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(rdma_resources(), resources);
}

// The far end's process is gone without a word.
TEST_F(Connecting, DeadListenerIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(connect());
  in.reset();
  listener.reset();
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Disconnected); }));
}

TEST_F(Connecting, SecondListenerOnThePortIsRefused) {
  Side second("10.77.0.2");
  EXPECT_THROW(second.device->listen(kPort), SystemError);
  second.device->listen(kPort + 1);
}

}  // namespace
}  // namespace ipoverbs::verbs::test
