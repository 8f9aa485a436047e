#include "verbs/soft/requester.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/verbs/soft/rc_script.h"
#include "verbs/device.h"

namespace ipoverbs::verbs::soft {
namespace {

using script::ack;
using script::kMtu;
using script::kStart;
using script::nak;
using script::rnr;
using script::take;
using namespace std::chrono_literals;

constexpr std::uint32_t kFirst = 10;  // PSN
constexpr std::uint64_t kWindow = 100 * (kMtu + SendWindow::kPacketCost);

// A requester, connected, its round trips first_timeout until one is measured.
class RequesterTest : public testing::Test {
 protected:
  RequesterTest() { connect({}); }

  void connect(RequesterConfig config, std::uint32_t depth = 32) {
    config.destination = QpNumber(0x22);
    config.first = Psn(kFirst);
    config.mtu = kMtu;
    if (config.window_limit == 0) config.window_limit = kWindow;
    queue_.emplace(depth, 4, 64, false);
    requester_.emplace(*queue_, completions_, QpNumber(0x11));
    requester_->connect(config);
  }

  void post(std::uint64_t id, std::size_t length, unsigned flags = 0) {
    ibv_sge sge = memory_.sge(0, length);
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    ASSERT_EQ(queue_->post(wr, table_), 0);
  }
  void post_signaled(std::uint64_t id, std::size_t length) { post(id, length, IBV_SEND_SIGNALED); }

  // The message with PSN 10 goes there and back in no time.
  void measure_a_round_trip() {
    post(0, 1);
    EXPECT_EQ(sent(), "only 10 A");
    hear(ack(10));
  }
  // What is sent now.
  std::string sent() {
    failure_ = requester_->transmit(now_, path_, burst_);
    return take(burst_);
  }
  void hear(const Packet& packet) { failure_ = requester_->on_answer(packet, now_); }
  // Lets the time come that the requester waits for; how long that was.
  Duration wait() {
    const auto due = requester_->deadline();
    if (!due) return Duration(-1);
    const Duration waited = *due - now_;
    now_ = *due;
    failure_ = requester_->on_timer(now_);
    return waited;
  }
  std::string completed() { return take(completions_); }

  MemoryTable table_;
  script::Memory memory_{table_, 65536};
  CompletionRing completions_{64};
  std::optional<SendQueue> queue_;
  std::optional<Requester> requester_;
  Path path_ = script::path();
  Burst burst_;
  TimePoint now_ = kStart;
  Requester::Failure failure_;
};

TEST_F(RequesterTest, CutsMessagesByThePathMtu) {
  post(1, 0);
  post(2, kMtu);
  post(3, kMtu + 1);
  post(4, 3 * kMtu);
  EXPECT_EQ(sent(), "only 10, only 11, first 12, last 13, first 14, middle 15, last 16 A");
  EXPECT_EQ(sent(), "");
}

TEST_F(RequesterTest, SolicitedAndImmediateStandInTheLastPacket) {
  ibv_sge sge = memory_.sge(0, kMtu + 1);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SOLICITED;
  wr.imm_data = std::bit_cast<__be32>(Be32(0x01020304));
  ASSERT_EQ(queue_->post(wr, table_), 0);
  static_cast<void>(requester_->transmit(now_, path_, burst_));
  std::vector<std::byte> bytes(burst_.segments()[1].size());
  burst_.write(burst_.segments()[1], 0, bytes);
  EXPECT_EQ(parse(bytes)->immediate[0], std::byte{1});
  EXPECT_EQ(parse(bytes)->immediate[3], std::byte{4});
  EXPECT_EQ(take(burst_), "first 10, last+imm 11 A S");
}

TEST_F(RequesterTest, WrapsThePsn) {
  RequesterConfig config;
  config.destination = QpNumber(0x22);
  config.first = Psn(0xffffff);
  config.mtu = kMtu;
  config.window_limit = kWindow;
  requester_->connect(config);
  post_signaled(1, 3 * kMtu);
  EXPECT_EQ(sent(), "first 16777215, middle 0, last 1 A");
  hear(ack(0));
  EXPECT_EQ(completed(), "");
  hear(ack(1));
  EXPECT_EQ(completed(), "1");
}

// --- asking for acknowledgements ---

TEST_F(RequesterTest, AsksEverySoManyMessagesAndForTheFirst) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  std::string all;
  for (std::uint64_t i = 2; i < 12; ++i) {
    post(i, 1);
    all += sent() + ", ";
  }
  EXPECT_EQ(all,
            "only 11, only 12, only 13, only 14, only 15, only 16, only 17, only 18 A, only 19, "
            "only 20, ");
}

TEST_F(RequesterTest, AsksForASignaledRequestWithNothingBehindIt) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  post_signaled(2, 1);
  EXPECT_EQ(sent(), "only 11 A");
  post_signaled(3, 1);
  post(4, 1);
  EXPECT_EQ(sent(), "only 12, only 13");
}

TEST_F(RequesterTest, AsksWhenTheLastAskingIsLongAgo) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  hear(ack(10));
  now_ += RcTuning{}.ask_idle - 1ns;
  post(2, 1);
  EXPECT_EQ(sent(), "only 11");
  now_ += 1ns;
  post(3, 1);
  EXPECT_EQ(sent(), "only 12 A");
}

TEST_F(RequesterTest, AsksAtHalfOfAShortQueue) {
  connect({}, 4);
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  post(2, 1);
  EXPECT_EQ(sent(), "only 11");
  post(3, 1);
  EXPECT_EQ(sent(), "only 12 A");
}

TEST_F(RequesterTest, AsksWhenTheWindowCloses) {
  RequesterConfig config;
  config.window_limit = 3 * (kMtu + SendWindow::kPacketCost);
  connect(config);
  post(1, 5 * kMtu);
  EXPECT_EQ(sent(), "first 10 A, middle 11 A, middle 12 A");  // each is a quarter of the window
  EXPECT_EQ(sent(), "");
  hear(ack(10));
  EXPECT_EQ(sent(), "middle 13 A");
  hear(ack(13));
  EXPECT_EQ(sent(), "last 14 A");
}

// --- acknowledgements ---

TEST_F(RequesterTest, AckCompletesSignaledRequestsUpToItsPsn) {
  post_signaled(1, 2 * kMtu);
  post(2, 1);
  post_signaled(3, 1);
  post_signaled(4, 1);
  EXPECT_EQ(sent(), "first 10, last 11, only 12, only 13, only 14 A");
  hear(ack(10));
  EXPECT_EQ(completed(), "");
  hear(ack(13));
  EXPECT_EQ(completed(), "1, 3");
  hear(ack(13));
  EXPECT_EQ(completed(), "");
  hear(ack(14));
  EXPECT_EQ(completed(), "4");
  EXPECT_TRUE(requester_->idle());
  EXPECT_FALSE(requester_->deadline());
  EXPECT_EQ(requester_->counters().messages, 4U);
}

TEST_F(RequesterTest, IgnoresAnswersAboutNothingUnderWay) {
  post_signaled(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  for (const Packet& stale : {ack(8), ack(11), ack(0xffffff), nak(NakCode::SequenceError, 9),
                              nak(NakCode::InvalidRequest, 11), rnr(1, 9), rnr(1, 11)}) {
    hear(stale);
    EXPECT_FALSE(failure_);
  }
  Packet reserved = ack(10);
  reserved.aeth.syndrome = 0x40;
  hear(reserved);
  reserved.aeth.syndrome = 0x64;
  hear(reserved);
  EXPECT_EQ(requester_->counters().stale_answers, 9U);
  EXPECT_EQ(completed(), "");
  EXPECT_EQ(sent(), "");
  hear(ack(10));
  EXPECT_EQ(completed(), "1");
}

// --- losses ---

TEST_F(RequesterTest, SequenceNakGoesBackAndAcknowledgesWhatCameBefore) {
  post_signaled(1, 1);
  post_signaled(2, 3 * kMtu);
  EXPECT_EQ(sent(), "only 10, first 11, middle 12, last 13 A");
  hear(nak(NakCode::SequenceError, 12));
  EXPECT_EQ(completed(), "1");
  EXPECT_EQ(sent(), "middle 12, last 13 A");
  EXPECT_EQ(requester_->counters().resent, 2U);
  hear(ack(13));
  EXPECT_EQ(completed(), "2");
}

TEST_F(RequesterTest, CopiesOfANakAreOne) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  now_ += 100us;
  hear(ack(10));
  post_signaled(2, 2 * kMtu);
  EXPECT_EQ(sent(), "first 11, last 12 A");
  now_ += 100us;
  hear(nak(NakCode::SequenceError, 11));
  EXPECT_EQ(sent(), "first 11, last 12 A");
  now_ += 49us;
  hear(nak(NakCode::SequenceError, 11));
  EXPECT_EQ(sent(), "");
  now_ += 1us;  // half a round trip: lost again, then
  hear(nak(NakCode::SequenceError, 11));
  EXPECT_EQ(sent(), "first 11, last 12 A");
}

TEST_F(RequesterTest, AckBeyondWhatIsToBeSentAgainSkipsIt) {
  post_signaled(1, 1);
  post_signaled(2, 1);
  post_signaled(3, 1);
  EXPECT_EQ(sent(), "only 10, only 11, only 12 A");
  hear(nak(NakCode::SequenceError, 10));
  hear(ack(11));
  EXPECT_EQ(completed(), "1, 2");
  EXPECT_EQ(sent(), "only 12 A");
}

TEST_F(RequesterTest, SilenceDrawsAProbeThenEverythingAgain) {
  measure_a_round_trip();
  post_signaled(1, 1);
  post_signaled(2, 2 * kMtu);
  EXPECT_EQ(sent(), "only 11, first 12, last 13 A");
  EXPECT_EQ(wait(), RcTuning{}.probe);
  EXPECT_EQ(sent(), "last 13 A");
  EXPECT_EQ(wait(), RcTuning{}.min_timeout - RcTuning{}.probe);
  EXPECT_EQ(sent(), "only 11, first 12, last 13 A");
  EXPECT_EQ(requester_->counters().probes, 1U);
  EXPECT_EQ(requester_->counters().timeouts, 1U);
  hear(ack(13));
  EXPECT_EQ(completed(), "1, 2");
}

// A probe would spoil the measurement that it waits for, and so would a timeout that forgot how
// long the last one was.
TEST_F(RequesterTest, UntilARoundTripIsMeasuredThereIsNoProbeAndTheTimeoutGrows) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  EXPECT_EQ(wait(), RcTuning{}.first_timeout);
  EXPECT_EQ(sent(), "only 10 A");
  hear(ack(10));  // to which of the two?
  now_ += 5ms;
  post_signaled(2, 1);
  EXPECT_EQ(sent(), "only 11 A");
  EXPECT_EQ(requester_->deadline(), now_ + 2 * RcTuning{}.first_timeout);
  now_ += 25ms;
  hear(ack(11));
  EXPECT_EQ(requester_->rtt().smoothed(), 25ms);
  EXPECT_EQ(requester_->counters().probes, 0U);
}

// A line on which every round trip takes as long: no answer is late before a margin.
TEST_F(RequesterTest, AnAnswerThatNobodyAskedForIsNotLate) {
  for (std::uint32_t psn = 10; psn < 30; ++psn) {
    post_signaled(psn, 1);
    EXPECT_EQ(sent(), fmt::format("only {} A", psn));
    now_ += 50ms;
    hear(ack(psn));
  }
  post_signaled(30, 1);
  post(31, 1);
  EXPECT_EQ(sent(), "only 30, only 31 A");
  now_ += 50ms;
  hear(ack(31));
  post(32, 1);
  EXPECT_EQ(sent(), "only 32 A");
  now_ += 1ms;
  post(33, 1);
  EXPECT_EQ(sent(), "only 33");
  now_ += 49ms;
  hear(ack(32));
  EXPECT_GE(wait(), 0ms);
  EXPECT_EQ(sent(), "only 33 A");
  now_ += 50ms;
  hear(ack(33));
  EXPECT_TRUE(requester_->idle());
  EXPECT_EQ(requester_->counters().timeouts, 0U);
  EXPECT_EQ(requester_->counters().resent, 0U);
}

TEST_F(RequesterTest, ProbeAsksForWhatNobodyAskedAbout) {
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  hear(ack(10));
  post(2, 1);
  EXPECT_EQ(sent(), "only 11");
  EXPECT_EQ(wait(), RcTuning{}.probe);
  EXPECT_EQ(sent(), "only 11 A");
  hear(ack(11));
  EXPECT_TRUE(requester_->idle());
  EXPECT_EQ(requester_->counters().resent, 0U);
}

TEST_F(RequesterTest, TimeoutFollowsTheRoundTripAndDoubles) {
  RequesterConfig config;
  config.tuning.probe = 1h;
  config.ack_timeout = 14;
  connect(config);
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  now_ += 4ms;
  hear(ack(10));
  post(2, 1);
  EXPECT_EQ(sent(), "only 11 A");
  EXPECT_EQ(wait(), 16ms);  // 4 and the margin of 12, which is more than 4 * 2
  EXPECT_EQ(sent(), "only 11 A");
  EXPECT_EQ(wait(), 32ms);
  EXPECT_EQ(sent(), "only 11 A");
  EXPECT_EQ(wait(), 64ms);
  EXPECT_EQ(sent(), "only 11 A");
  EXPECT_EQ(wait(), *ack_timeout(14));
}

TEST_F(RequesterTest, GivesUpAfterTheRetriesOfTheAckTimeout) {
  for (const std::uint8_t retries : std::to_array<std::uint8_t>({0, 3, 7})) {
    RequesterConfig config;
    config.retry_count = retries;
    connect(config);
    now_ = kStart;
    post_signaled(1, 1);
    post(2, 1);
    ASSERT_EQ(sent(), "only 10, only 11 A");
    while (!failure_ && wait() >= 0ns) {
      if (failure_) break;
      EXPECT_NE(sent(), "");
    }
    EXPECT_EQ(failure_, IBV_WC_RETRY_EXC_ERR);
    EXPECT_GE(now_ - kStart, (retries + 1) * *ack_timeout(14));
    EXPECT_LE(now_ - kStart, (retries + 2) * *ack_timeout(14));
    EXPECT_GT(requester_->counters().timeouts, retries);
    requester_->flush(*failure_);
    EXPECT_EQ(completed(), "1 status 12, 2 status 5");
  }
}

TEST_F(RequesterTest, EndlessAckTimeoutNeverGivesUp) {
  RequesterConfig config;
  config.ack_timeout = 0;
  config.retry_count = 0;
  connect(config);
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(wait(), RcTuning{}.max_timeout);
    EXPECT_FALSE(failure_);
    EXPECT_EQ(sent(), "only 10 A");
  }
}

TEST_F(RequesterTest, AnyAnswerRestoresTheRetries) {
  RequesterConfig config;
  config.retry_count = 1;
  connect(config);
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  for (int i = 0; i < 50; ++i) {
    wait();
    ASSERT_FALSE(failure_);
    static_cast<void>(sent());
    hear(ack(9));  // alive, and has nothing
  }
  EXPECT_GT(now_ - kStart, 4 * *ack_timeout(14));
}

// What both devices are told where nobody says otherwise: a peer that stands still for some seconds
// is waited for, one that is gone is noticed before the transport takes it for dead (5 s).
TEST_F(RequesterTest, UsualTimersOutlastASecondsLongStall) {
  const ConnectionTimers timers;
  RequesterConfig config;
  config.retry_count = timers.retry_count;
  config.ack_timeout = timers.ack_timeout;
  connect(config);
  post_signaled(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  while (now_ < kStart + 3s) {
    wait();
    ASSERT_FALSE(failure_) << (now_ - kStart) / 1ms;
    EXPECT_EQ(sent(), "only 10 A");
  }
  hear(ack(10));
  EXPECT_EQ(completed(), "1");
  const TimePoint begin = now_;
  post_signaled(2, 1);
  EXPECT_EQ(sent(), "only 11 A");
  while (wait() >= 0ns && !failure_) static_cast<void>(sent());
  EXPECT_EQ(failure_, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GT(now_ - begin, 3s);
  EXPECT_LT(now_ - begin, 5s);
}

TEST_F(RequesterTest, ASignOfLifeRestoresTheRetriesForAWhile) {
  RequesterConfig config;
  config.retry_count = 1;
  connect(config);
  const Duration patience = 2 * *ack_timeout(14);
  post(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  TimePoint last_sign = now_;
  while (wait() >= 0ns && !failure_) {
    static_cast<void>(sent());
    requester_->on_sign_of_life(now_);
    last_sign = now_;
  }
  EXPECT_EQ(failure_, IBV_WC_RETRY_EXC_ERR);
  EXPECT_LT(now_ - last_sign, patience);
  EXPECT_GE(now_ - kStart, Requester::kUnanswered * patience);
  EXPECT_LE(now_ - kStart, (Requester::kUnanswered + 1) * patience);
}

// --- receiver not ready ---

TEST_F(RequesterTest, RnrWaitsAsLongAsItSays) {
  post_signaled(1, 1);
  post_signaled(2, 1);
  EXPECT_EQ(sent(), "only 10, only 11 A");
  hear(rnr(12, 11));
  EXPECT_EQ(completed(), "1");
  EXPECT_EQ(sent(), "");
  hear(rnr(20, 11));                      // a copy changes nothing
  hear(nak(NakCode::SequenceError, 11));  // nor does the NAK for what came behind it
  EXPECT_EQ(sent(), "");
  EXPECT_EQ(wait(), 640us);
  EXPECT_EQ(sent(), "only 11 A");
  hear(ack(11));
  EXPECT_EQ(completed(), "2");
}

TEST_F(RequesterTest, RnrIsRetriedSoOften) {
  RequesterConfig config;
  config.rnr_retry = 2;
  connect(config);
  post_signaled(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  for (int i = 0; i < 2; ++i) {
    hear(rnr(1, 10));
    EXPECT_FALSE(failure_);
    EXPECT_EQ(wait(), 10us);
    EXPECT_EQ(sent(), "only 10 A");
  }
  hear(rnr(1, 10));
  EXPECT_EQ(failure_, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(RequesterTest, RnrRetrySevenIsEndless) {
  RequesterConfig config;
  config.rnr_retry = 7;
  connect(config);
  post_signaled(1, 1);
  EXPECT_EQ(sent(), "only 10 A");
  for (int i = 0; i < 100; ++i) {
    hear(rnr(1, 10));
    EXPECT_FALSE(failure_);
    wait();
    EXPECT_EQ(sent(), "only 10 A");
  }
}

// --- errors ---

TEST_F(RequesterTest, FatalNakFailsTheRequestThatItNames) {
  struct Row {
    NakCode code;
    ibv_wc_status status;
  };
  for (const Row& row : {Row{NakCode::InvalidRequest, IBV_WC_REM_INV_REQ_ERR},
                         Row{NakCode::RemoteAccess, IBV_WC_REM_ACCESS_ERR},
                         Row{NakCode::RemoteOperational, IBV_WC_REM_OP_ERR}}) {
    connect({});
    post(1, 1);
    post(2, 2 * kMtu);
    post(3, 1);
    EXPECT_EQ(sent(), "only 10, first 11, last 12, only 13 A");
    hear(nak(row.code, 12));
    EXPECT_EQ(failure_, row.status);
    requester_->flush(*failure_);
    EXPECT_EQ(completed(), fmt::format("2 status {}, 3 status 5", static_cast<int>(row.status)));
    EXPECT_EQ(sent(), "");
    EXPECT_FALSE(requester_->deadline());
  }
}

TEST_F(RequesterTest, UnregisteredMemoryFailsWhenItsTurnComes) {
  post_signaled(1, 1);
  ibv_sge sge = memory_.sge(0, 1);
  sge.lkey ^= 1;
  ibv_send_wr wr{};
  wr.wr_id = 2;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(queue_->post(wr, table_), 0);
  post_signaled(3, 1);
  EXPECT_EQ(sent(), "only 10 A");
  EXPECT_FALSE(failure_);
  hear(ack(10));
  EXPECT_EQ(sent(), "");
  EXPECT_EQ(failure_, IBV_WC_LOC_PROT_ERR);
  requester_->flush(*failure_);
  EXPECT_EQ(completed(), "1, 2 status 4, 3 status 5");
}

TEST_F(RequesterTest, CongestionNotificationNarrowsTheWindowOnce) {
  post(1, 60000);
  static_cast<void>(sent());
  const std::uint64_t before = requester_->window().bytes();
  requester_->on_congestion();
  requester_->on_congestion();
  EXPECT_EQ(requester_->window().bytes(), before / 2);
  EXPECT_EQ(requester_->counters().notifications, 2U);
  EXPECT_EQ(requester_->counters().resent, 0U);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
