// A bulk transfer over a line that marks what queues (ECN), on the virtual clock.
#include <string>

#include <gtest/gtest.h>

#include "tests/verbs/soft/sim_network.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using sim::End;
using sim::Network;

constexpr std::size_t kSize = 65520;
constexpr std::uint32_t kDepth = 64;

// Messages from A to B, always as many under way as the queues hold.
class CongestionTest : public testing::Test {
 protected:
  void make(Duration mark_beyond) {
    network_.emplace();
    network_->a.wire.mark_beyond(mark_beyond);
    QueuePairSetup setup;
    setup.send_depth = setup.receive_depth = kDepth;
    setup.number = QpNumber(0x11);
    sender_ = &network_->a.add_queue_pair(setup);
    setup.number = QpNumber(0x22);
    receiver_ = &network_->b.add_queue_pair(setup);
    Network::Connect how;
    how.mtu = 4096;
    how.ack_timeout = 17;
    network_->connect(*sender_, *receiver_, how);
    const auto [source, source_key] = network_->a.memory(kSize);
    const auto [sink, sink_key] = network_->b.memory(kSize);
    source_ = {std::bit_cast<std::uint64_t>(source.data()), kSize, source_key.value()};
    sink_ = {std::bit_cast<std::uint64_t>(sink.data()), kSize, sink_key.value()};
    for (std::uint32_t i = 0; i < kDepth; ++i) post_receive();
    for (std::uint32_t i = 0; i < kDepth; ++i) post_send();
  }
  void post_send() {
    ibv_send_wr wr{};
    wr.sg_list = &source_;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sender_, &wr, &bad), 0);
  }
  void post_receive() {
    ibv_recv_wr wr{};
    wr.sg_list = &sink_;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(receiver_, &wr, &bad), 0);
  }
  // Messages that arrive within `span` from now on.
  std::uint64_t carry(Duration span) {
    std::uint64_t arrived = 0;
    network_->run(
        [&](End& /*end*/, std::span<const ibv_wc> completions) {
          for (const ibv_wc& wc : completions) {
            ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
            if (wc.opcode == IBV_WC_SEND) {
              post_send();
            } else {
              post_receive();
              ++arrived;
            }
          }
        },
        network_->clock.now() + span);
    return arrived;
  }

  std::optional<Network> network_;
  QueuePair* sender_ = nullptr;
  QueuePair* receiver_ = nullptr;
  ibv_sge source_{};
  ibv_sge sink_{};
};

TEST_F(CongestionTest, WithoutMarksTheQueueHoldsTheWindow) {
  make(Duration::max());
  static_cast<void>(carry(20ms));
  static_cast<void>(network_->a.wire.take_longest_queue());
  static_cast<void>(carry(20ms));
  EXPECT_GE(network_->a.wire.take_longest_queue(), 500us);
  EXPECT_EQ(receiver_->responder().counters().notifications, 0U);
}

TEST_F(CongestionTest, MarksKeepTheQueueShortAndTheLineBusy) {
  make(100us);
  static_cast<void>(carry(20ms));  // the start overshoots
  static_cast<void>(network_->a.wire.take_longest_queue());
  const std::uint64_t arrived = carry(100ms);
  EXPECT_LE(network_->a.wire.take_longest_queue(), 250us);
  constexpr std::uint64_t kFull = 100'000'000 * sim::SimWire::kBitsPerNanosecond / 8 / kSize;
  EXPECT_GE(arrived, kFull * 8 / 10);
  const EngineCounters& heard = network_->a.worker.counters();
  const EngineCounters& told = network_->b.worker.counters();
  EXPECT_GE(told.notifications_sent.value(), 10U);
  EXPECT_GE(told.marked.value(), told.notifications_sent.value());
  EXPECT_LE(heard.notifications_heard.value(), told.notifications_sent.value());
  EXPECT_GE(heard.notifications_heard.value() + 1, told.notifications_sent.value());
  EXPECT_EQ(heard.resent.value(), 0U);
}

// As many marks as can be: the window falls to its floor, and what is under way still moves.
TEST_F(CongestionTest, EverythingMarkedStillMoves) {
  make(-1ns);
  static_cast<void>(carry(20ms));
  EXPECT_GE(carry(20ms), 20U);
  EXPECT_LE(sender_->requester().window().bytes(), 8 * (4096 + SendWindow::kPacketCost));
}

// A line with a long way: what is measured of it is far from what timers begin with.
class LongWayTest : public CongestionTest, public testing::WithParamInterface<Duration> {
 protected:
  void make_long() {
    make(Duration::max());
    for (End* end : {&network_->a, &network_->b}) end->wire.set_latency(GetParam() / 2);
  }
  [[nodiscard]] const RequesterCounters& sent() const { return sender_->requester().counters(); }
};

TEST_P(LongWayTest, TheWindowIsFullAndNothingIsSentTwice) {
  make_long();
  static_cast<void>(carry(40 * GetParam()));  // the first timeouts are too early
  const std::uint64_t timeouts = sent().timeouts;
  const std::uint64_t resent = sent().resent;
  const std::uint64_t arrived = carry(40 * GetParam());
  // Of a window of 1 MiB a round trip, less what packets cost beside their payload.
  EXPECT_GE(arrived, 40U * 16 * 7 / 10);
  EXPECT_LE(timeouts, 4U);
  EXPECT_EQ(sent().timeouts, timeouts);
  EXPECT_EQ(sent().resent, resent);
}

INSTANTIATE_TEST_SUITE_P(RoundTrips, LongWayTest, testing::Values(5ms, 25ms, 100ms),
                         [](const auto& trip) { return std::to_string(trip.param / 1ms) + "ms"; });

}  // namespace
}  // namespace ipoverbs::verbs::soft
