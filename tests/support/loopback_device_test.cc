// The control path: connecting, refusing, leaving, and what each end is told.
#include "tests/support/loopback_device.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

using verbs::EventKind;

// Two hosts that know nothing of each other yet.
struct LoopbackControl : testing::Test {
  // A has dialled and has its queue pair.
  void dial() {
    a.dial(kB);
    ASSERT_EQ(a.process(), Lines{"route resolved"});
    a.create_queue_pair();
  }
  // B listens and holds A's request.
  void request() {
    b.device->listen(kPort);
    dial();
    a.connection->connect(as_data("hello"));
    ASSERT_EQ(b.process(), Lines{"connect request"});
  }
  void accept() {
    request();
    b.create_queue_pair();
    b.connection->accept(as_data("welcome"));
  }
  std::string data_of(const Host& host) const {
    return {reinterpret_cast<const char*>(host.data.data()), host.data.size()};
  }
  LoopbackNetwork network;
  Host a{network, kA};
  Host b{network, kB};
};

std::string padded(std::string text, std::size_t size) {
  text.resize(size);
  return text;
}

TEST_F(LoopbackControl, ConnectionIsEstablishedAndPrivateDataIsPadded) {
  request();
  EXPECT_EQ(data_of(b), padded("hello", 56));
  EXPECT_EQ(b.connection->remote().address, kA);
  EXPECT_NE(b.connection->remote().port, 0);
  b.create_queue_pair();
  b.connection->accept(as_data("welcome"));
  EXPECT_EQ(b.process(), Lines{});
  EXPECT_EQ(a.process(), Lines{"established"});
  EXPECT_EQ(data_of(a), padded("welcome", 196));
  EXPECT_EQ(a.connection->remote(), (Endpoint{kB, kPort, 0}));
  EXPECT_EQ(b.process(), Lines{"established"});
  EXPECT_EQ(data_of(b), "");
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackControl, EventDescriptorIsReadableWhileThereAreEvents) {
  EXPECT_FALSE(readable(a.device->event_fd()));
  a.dial(kB);
  EXPECT_TRUE(readable(a.device->event_fd()));
  EXPECT_EQ(a.process(), Lines{"route resolved"});
  EXPECT_FALSE(readable(a.device->event_fd()));
}

TEST_F(LoopbackControl, WhoDialledCanSendOnlyOnceEstablishedWasHandedOut) {
  accept();
  ASSERT_EQ(a.receive(1), 0);
  ASSERT_EQ(b.receive(1), 0);
  EXPECT_EQ(a.send(2, "early"), EINVAL);
  ASSERT_EQ(b.send(3, "waits"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(a.process(), Lines{"established"});
  EXPECT_EQ(a.poll(), Lines{"receive 1 of 5 bytes"});
  // B hears data before its own Established.
  EXPECT_EQ(a.send(2, "x"), 0);
  EXPECT_EQ(b.poll(), (Lines{"send 3", "receive 1 of 1 bytes"}));
  EXPECT_EQ(b.process(), Lines{"established"});
}

TEST_F(LoopbackControl, RejectionCarriesPrivateData) {
  request();
  b.connection->reject(as_data("no"));
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
  EXPECT_EQ(data_of(a), padded("no", 148));
  EXPECT_EQ(a.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackControl, RequestThatNobodyTakesIsRejected) {
  b.device->listen(kPort);
  dial();
  a.connection->connect({});
  struct : verbs::EventHandler {
    void on_event(verbs::Event&) override {}
  } careless;
  EXPECT_EQ(b.device->process_events(careless), 1);
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
}

TEST_F(LoopbackControl, RequestAtADeviceThatIsClosedIsRejected) {
  b.device->listen(kPort);
  dial();
  a.connection->connect({});
  b.shared.reset();
  b.completions.reset();
  b.region.reset();
  b.device.reset();
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
}

TEST_F(LoopbackControl, NoListenerRejects) {
  dial();
  a.connection->connect({});
  EXPECT_EQ(a.process(), Lines{"rejected 8"});
}

TEST_F(LoopbackControl, PortIsListenedOnOnce) {
  b.device->listen(kPort);
  EXPECT_EQ(error_of([&] { b.device->listen(kPort); }), EADDRINUSE);
  EXPECT_EQ(error_of([&] { a.device->listen(kPort); }), 0);
}

TEST_F(LoopbackControl, UnknownAddressNeverAnswers) {
  a.dial(*IpAddress::parse("192.0.2.99"));
  EXPECT_EQ(a.process(), Lines{});
}

TEST_F(LoopbackControl, UnknownAddressFailsAtOnceIfSoWished) {
  Host c(network, *IpAddress::parse("192.0.2.3"), {.fail_unknown_at_once = true});
  c.dial(*IpAddress::parse("192.0.2.99"));
  EXPECT_EQ(c.process(), Lines{fmt::format("failed -{}", ETIMEDOUT)});
  c.dial(kB);
  EXPECT_EQ(c.process(), Lines{"route resolved"});
}

TEST_F(LoopbackControl, DisconnectTellsEachEndOnceAndTheInitiatorAfterTheAnswer) {
  establish(a, b);
  a.connection->disconnect();
  a.connection->disconnect();
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.qp()->state, IBV_QPS_RTS);
  EXPECT_EQ(b.process(), Lines{"disconnected"});
  EXPECT_EQ(b.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  b.connection->disconnect();
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackControl, BothDisconnectAtOnce) {
  establish(a, b);
  network.partition(kA, kB);
  a.connection->disconnect();
  b.connection->disconnect();
  EXPECT_EQ(a.process(), Lines{});
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  EXPECT_EQ(b.process(), Lines{"disconnected"});
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackControl, BothDisconnectAtOnceAndOneIsDestroyed) {
  establish(a, b);
  network.partition(kA, kB);
  a.connection->disconnect();
  a.connection.reset();
  b.connection->disconnect();
  network.heal(kA, kB);
  EXPECT_EQ(a.process(), Lines{});
  EXPECT_EQ(b.process(), Lines{"disconnected"});
}

TEST_F(LoopbackControl, SendsToAnEndThatLeavesAreFlushedByItsDisconnected) {
  establish(a, b);
  b.connection.reset();
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(a.process(), Lines{"disconnected"});
  EXPECT_EQ(a.poll(), Lines{fmt::format("1: status {}", +IBV_WC_WR_FLUSH_ERR)});
}

TEST_F(LoopbackControl, SendsToAnEndThatGaveUpAreFlushedByItsRejection) {
  accept();
  a.connection.reset();
  ASSERT_EQ(b.send(1, "x"), 0);
  EXPECT_EQ(b.poll(), Lines{});
  EXPECT_EQ(b.process(), Lines{"rejected 28"});
  EXPECT_EQ(b.poll(), Lines{fmt::format("1: status {}", +IBV_WC_WR_FLUSH_ERR)});
}

TEST_F(LoopbackControl, DisconnectedBeforeEstablishedStaysInError) {
  accept();
  a.connection->disconnect();
  EXPECT_EQ(a.process(), Lines{"established"});
  EXPECT_EQ(a.qp()->state, IBV_QPS_ERR);
}

TEST_F(LoopbackControl, DisconnectBeforeThereIsAnythingToDisconnectIsHarmless) {
  a.dial(kB);
  a.connection->disconnect();
  EXPECT_EQ(a.process(), Lines{"route resolved"});
  a.connection->disconnect();
  a.create_queue_pair();
  EXPECT_EQ(a.qp()->state, IBV_QPS_INIT);
}

// Destroying a Connection: the other side is told what its state asks for.
TEST_F(LoopbackControl, DialledAndDestroyedBeforeTheRequestSaysNothing) {
  b.device->listen(kPort);
  dial();
  a.connection.reset();
  EXPECT_EQ(b.process(), Lines{});
}

TEST_F(LoopbackControl, RequestingAndDestroyedRejectsByTimeout) {
  request();
  b.create_queue_pair();
  a.connection.reset();
  EXPECT_EQ(error_of([&] { b.connection->accept({}); }), EINVAL);
  EXPECT_EQ(b.process(), Lines{"rejected 4"});
}

TEST_F(LoopbackControl, RequestedAndDestroyedRejects) {
  request();
  b.connection.reset();
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
}

TEST_F(LoopbackControl, AcceptedAndDestroyedRejectsInPlaceOfEstablished) {
  accept();
  b.connection.reset();
  EXPECT_EQ(a.process(), Lines{"rejected 28"});
}

TEST_F(LoopbackControl, AnsweredAndDestroyedRejectsWhoAccepted) {
  accept();
  a.connection.reset();
  EXPECT_EQ(b.process(), Lines{"rejected 28"});
}

TEST_F(LoopbackControl, EstablishedAndDestroyedDisconnects) {
  accept();
  EXPECT_EQ(a.process(), Lines{"established"});
  a.connection.reset();
  EXPECT_EQ(b.process(), (Lines{"established", "disconnected"}));
  EXPECT_EQ(a.process(), Lines{});
}

TEST_F(LoopbackControl, DestroyedBeforeItsDisconnectedWasHandedOutAnswersAllTheSame) {
  establish(a, b);
  a.connection->disconnect();
  b.connection.reset();
  EXPECT_EQ(b.process(), Lines{});
  EXPECT_EQ(a.process(), Lines{"disconnected"});
}

TEST_F(LoopbackControl, HandlerMayDestroyTheEventsOwnConnectionAndDialAnew) {
  struct Redialler : verbs::EventHandler {
    explicit Redialler(Host& h) : host(h) {}
    void on_event(verbs::Event& event) override {
      EXPECT_EQ(event.connection, host.connection.get());
      host.dial(kB);
      ++events;
    }
    Host& host;
    int events = 0;
  } redialler(a);
  a.dial(kB);
  // The new one's event waits for the next call.
  EXPECT_EQ(a.device->process_events(redialler), 1);
  EXPECT_TRUE(readable(a.device->event_fd()));
  EXPECT_EQ(a.process(), Lines{"route resolved"});
}

TEST_F(LoopbackControl, PrivateDataToTheLimitAndOneMore) {
  const std::vector<std::byte> bytes(197);
  const std::span all(bytes);
  b.device->listen(kPort);
  dial();
  EXPECT_EQ(error_of([&] { a.connection->connect(all.first(57)); }), EINVAL);
  EXPECT_EQ(error_of([&] { a.connection->connect(all.first(56)); }), 0);
  EXPECT_EQ(b.process(), Lines{"connect request"});
  b.create_queue_pair();
  EXPECT_EQ(error_of([&] { b.connection->reject(all.first(149)); }), EINVAL);
  EXPECT_EQ(error_of([&] { b.connection->accept(all.first(197)); }), EINVAL);
  EXPECT_EQ(error_of([&] { b.connection->accept(all.first(196)); }), 0);
  EXPECT_EQ(a.process(), Lines{"established"});
}

TEST_F(LoopbackControl, OutOfTurnIsRefused) {
  b.device->listen(kPort);
  a.dial(kB);
  EXPECT_EQ(error_of([&] { a.create_queue_pair(); }), EINVAL);  // not resolved
  EXPECT_EQ(error_of([&] { static_cast<void>(a.connection->attributes()); }), EINVAL);
  a.process();
  EXPECT_EQ(error_of([&] { a.connection->connect({}); }), EINVAL);  // no queue pair
  a.create_queue_pair();
  EXPECT_EQ(error_of([&] { a.create_queue_pair(); }), EINVAL);  // there is one
  EXPECT_EQ(error_of([&] { a.connection->accept({}); }), EINVAL);
  EXPECT_EQ(error_of([&] { a.connection->reject({}); }), EINVAL);
  a.connection->connect({});
  EXPECT_EQ(error_of([&] { a.connection->connect({}); }), EINVAL);
  EXPECT_EQ(b.process(), Lines{"connect request"});
  EXPECT_EQ(error_of([&] { b.connection->accept({}); }), EINVAL);  // no queue pair
  EXPECT_EQ(error_of([&] { b.connection->connect({}); }), EINVAL);
}

TEST_F(LoopbackControl, TwoConnectionsBetweenTheSameTwoAreApart) {
  establish(a, b);
  auto first_a = std::move(a.connection);
  auto first_b = std::move(b.connection);
  reconnect(a, b);
  ASSERT_EQ(b.receive(1), 0);
  EXPECT_NE(a.qp()->qp_num, first_a->queue_pair()->qp_num);
  first_a.reset();
  EXPECT_EQ(b.process(), Lines{"disconnected"});
  EXPECT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(b.poll(), Lines{"receive 1 of 1 bytes"});
}

TEST_F(LoopbackControl, DeviceMayDialItself) {
  struct Both : verbs::EventHandler {
    void on_event(verbs::Event& event) override {
      if (event.incoming) passive = std::move(event.incoming);
      kinds.push_back(event.kind);
    }
    std::unique_ptr<verbs::Connection> passive;
    std::vector<EventKind> kinds;
  } both;
  a.device->listen(kPort);
  a.dial(kA);
  a.process();
  a.create_queue_pair();
  a.connection->connect({});
  EXPECT_EQ(a.device->process_events(both), 1);
  EXPECT_EQ(both.kinds, std::vector{EventKind::ConnectRequest});
}

}  // namespace
}  // namespace ipoverbs::support
