// Completions: their order, their loss, and what wakes who waits; the queue pair in error.
#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/loopback_device.h"
#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

using Delivery = LoopbackNetwork::Delivery;

const std::string kFlushed = fmt::format("status {}", +IBV_WC_WR_FLUSH_ERR);

struct LoopbackCompletions : testing::Test {
  LoopbackCompletions() {
    establish(a, b);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(b.receive(i), 0);
  }
  void arm(bool solicited_only = false) {
    ASSERT_EQ(ibv_req_notify_cq(b.completions->raw(), solicited_only ? 1 : 0), 0);
  }
  // Whether B was woken since; takes the event.
  bool woken() {
    const bool was = readable(b.completions->fd());
    b.completions->consume_events();
    return was;
  }
  LoopbackNetwork network;
  Host a{network, kA};
  Host b{network, kB};
};

TEST_F(LoopbackCompletions, OneEventForEachArming) {
  arm();
  EXPECT_FALSE(woken());
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_TRUE(woken());
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_FALSE(woken());
  arm();
  EXPECT_FALSE(woken());  // the completions that are there already say nothing
  ASSERT_EQ(a.send(2, "x"), 0);
  EXPECT_TRUE(woken());
}

TEST_F(LoopbackCompletions, NoEventWithoutArming) {
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_FALSE(woken());
}

TEST_F(LoopbackCompletions, SolicitedOnlyWaitsForASolicitedMessage) {
  arm(true);
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_FALSE(woken());
  ASSERT_EQ(a.send(1, "x", IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
  EXPECT_TRUE(woken());
}

TEST_F(LoopbackCompletions, SolicitedOnlyWakesForAFailure) {
  arm(true);
  network.break_queue_pair(verbs::QpNumber(b.qp()->qp_num));
  EXPECT_FALSE(woken());  // B had nothing outstanding of its own
  ASSERT_EQ(b.send(9, "x"), 0);
  EXPECT_TRUE(woken());
}

TEST_F(LoopbackCompletions, ArmingForSolicitedDoesNotWeakenArmingForAny) {
  arm();
  arm(true);
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_TRUE(woken());
}

TEST_F(LoopbackCompletions, ArmingForAnyWidensArmingForSolicited) {
  arm(true);
  arm();
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_TRUE(woken());
}

TEST_F(LoopbackCompletions, PollTakesNoMoreThanAsked) {
  ASSERT_EQ(a.send(0, "x"), 0);
  ASSERT_EQ(a.send(1, "x"), 0);
  ASSERT_EQ(a.send(2, "x"), 0);
  std::array<ibv_wc, 4> wc{};
  EXPECT_EQ(ibv_poll_cq(b.completions->raw(), 2, wc.data()), 2);
  EXPECT_EQ(wc[1].wr_id, 1U);
  EXPECT_EQ(ibv_poll_cq(b.completions->raw(), 4, wc.data()), 1);
  EXPECT_EQ(ibv_poll_cq(b.completions->raw(), 4, wc.data()), 0);
}

TEST_F(LoopbackCompletions, FailedCompletionHasAWrongOpcode) {
  network.partition(kA, kB);
  ASSERT_EQ(a.send(3, "x"), 0);
  network.break_queue_pair(verbs::QpNumber(a.qp()->qp_num));
  ibv_wc wc{};
  ASSERT_EQ(ibv_poll_cq(a.completions->raw(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 3U);
  EXPECT_EQ(wc.qp_num, a.qp()->qp_num);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
}

TEST_F(LoopbackCompletions, BrokenQueuePairFlushesWhatFollowed) {
  network.partition(kA, kB);
  ASSERT_EQ(a.send(3, "x", 0), 0);
  ASSERT_EQ(a.send(4, "x", 0), 0);
  network.break_queue_pair(verbs::QpNumber(a.qp()->qp_num));
  ASSERT_EQ(a.send(5, "x", 0), 0);
  EXPECT_EQ(a.poll(), (Lines{fmt::format("3: status {}", +IBV_WC_RETRY_EXC_ERR), "4: " + kFlushed,
                             "5: " + kFlushed}));
  EXPECT_EQ(a.process(), Lines{});  // the connection manager does not know
}

TEST_F(LoopbackCompletions, SendingToAQueuePairInErrorFails) {
  network.break_queue_pair(verbs::QpNumber(b.qp()->qp_num));
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(a.poll(), Lines{fmt::format("1: status {}", +IBV_WC_RETRY_EXC_ERR)});
}

TEST_F(LoopbackCompletions, SendThatWaitsForAReceiveFailsWhenThePeerIsInError) {
  for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(a.send(i, "x"), 0);
  EXPECT_EQ(a.poll().size(), 8U);
  ASSERT_EQ(a.send(8, "x"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  network.break_queue_pair(verbs::QpNumber(b.qp()->qp_num));
  EXPECT_EQ(a.poll(), Lines{fmt::format("8: status {}", +IBV_WC_RETRY_EXC_ERR)});
}

TEST_F(LoopbackCompletions, DisconnectFlushesSendsInOrderAndKeepsSharedReceives) {
  network.set_delivery(Delivery::Manual);
  for (std::size_t i = 9; i > 6; --i) ASSERT_EQ(b.send(i, "x", 0), 0);
  b.connection->disconnect();
  EXPECT_EQ(b.poll(), (Lines{"9: " + kFlushed, "8: " + kFlushed, "7: " + kFlushed}));
  // Slots of all three are free again.
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(b.send(i, "x", 0), 0);
}

TEST(LoopbackFlush, DisconnectFlushesOwnReceivesInOrder) {
  LoopbackOptions options;
  options.capabilities.max_srq_wr = 0;
  LoopbackNetwork network;
  Host a(network, kA, options);
  Host b(network, kB, options);
  establish(a, b);
  ASSERT_EQ(b.receive(5), 0);
  ASSERT_EQ(b.receive(4), 0);
  b.connection->disconnect();
  ASSERT_EQ(b.receive(3), 0);
  EXPECT_EQ(b.poll(), (Lines{"5: " + kFlushed, "4: " + kFlushed, "3: " + kFlushed}));
}

TEST_F(LoopbackCompletions, OfADestroyedQueuePairMayStillBePolled) {
  network.set_delivery(Delivery::Manual);
  ASSERT_EQ(a.send(0, "x"), 0);
  ASSERT_EQ(b.send(9, "x"), 0);
  EXPECT_EQ(network.deliver_between(kA, kB), 1U);
  b.connection.reset();
  EXPECT_EQ(b.poll(), (Lines{"receive 0 of 1 bytes", "9: " + kFlushed}));
}

TEST(LoopbackFlush, CompletionsOfADestroyedQueuePairMayBeForgotten) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB, {.forget_completions_of_destroyed = true});
  establish(a, b);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(b.receive(i), 0);
  ASSERT_EQ(a.send(0, "x"), 0);
  ASSERT_EQ(b.receive(0), ENOMEM);
  b.connection.reset();
  EXPECT_EQ(b.poll(), Lines{});
  EXPECT_EQ(b.receive(0), 0);  // the receive is lost, its slot is not
}

TEST(LoopbackOverrun, CompletionsBeyondTheDepthAreLostAndCounted) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  b.completions = b.device->create_completion_queue(2);
  establish(a, b);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(b.receive(i), 0);
  ASSERT_EQ(a.send(0, "x"), 0);
  ASSERT_EQ(a.send(1, "x"), 0);
  EXPECT_EQ(network.overrun_count(), 0U);
  ASSERT_EQ(a.send(2, "x"), 0);
  EXPECT_EQ(network.overrun_count(), 1U);
  EXPECT_EQ(b.poll().size(), 2U);
}

struct LoopbackManual : testing::Test {
  LoopbackManual() {
    establish(a, b);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(a.receive(i), 0);
      EXPECT_EQ(b.receive(i), 0);
    }
  }
  LoopbackNetwork network{Delivery::Manual};
  Host a{network, kA};
  Host b{network, kB};
};

TEST_F(LoopbackManual, NothingIsCarriedUntilDelivered) {
  ASSERT_EQ(a.send(10, "x"), 0);
  ASSERT_EQ(b.send(11, "x"), 0);
  ASSERT_EQ(a.send(12, "x"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(network.deliver(2), 2U);
  EXPECT_EQ(a.poll(), (Lines{"send 10", "receive 0 of 1 bytes"}));
  EXPECT_EQ(b.poll(), (Lines{"receive 0 of 1 bytes", "send 11"}));
  EXPECT_EQ(network.deliver(), 1U);
  EXPECT_EQ(network.deliver(), 0U);
}

TEST_F(LoopbackManual, OneDirectionCanBeDeliveredAlone) {
  ASSERT_EQ(a.send(10, "x"), 0);
  ASSERT_EQ(b.send(11, "x"), 0);
  EXPECT_EQ(network.deliver_between(kB, kA), 1U);
  EXPECT_EQ(b.poll(), Lines{"send 11"});
  EXPECT_EQ(network.deliver_between(kB, kA), 0U);
  network.set_delivery(Delivery::Automatic);
  EXPECT_EQ(b.poll(), Lines{"receive 0 of 1 bytes"});
}

TEST_F(LoopbackManual, MessageThatMustWaitLetsAnotherQueuePairsPass) {
  for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(a.send(10 + i, "x", 0), 0);
  ASSERT_EQ(b.send(20, "x"), 0);
  EXPECT_EQ(network.deliver(), 5U);
  EXPECT_EQ(b.poll().back(), "send 20");
  EXPECT_EQ(network.rnr_count(), 1U);
}

}  // namespace
}  // namespace ipoverbs::support
