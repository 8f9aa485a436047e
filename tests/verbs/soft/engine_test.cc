// Two devices through the inline verbs, on the virtual clock.
#include "verbs/soft/engine.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tests/verbs/soft/sim_network.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using sim::End;
using sim::Network;

constexpr TimePoint kLater = TimePoint{} + 100s;

// Two connected queue pairs, with registered memory at both ends.
class EngineTest : public testing::Test {
 protected:
  void make(const sim::NetworkConfig& config = {}, const Network::Connect& how = {},
            std::uint32_t depth = 64) {
    network_.emplace(config);
    QueuePairSetup setup;
    setup.number = QpNumber(0x11);
    setup.send_depth = setup.receive_depth = depth;
    setup.send_sge = 4;
    setup.max_inline = 64;
    qp_a_ = &network_->a.add_queue_pair(setup);
    setup.number = QpNumber(0x22);
    qp_b_ = &network_->b.add_queue_pair(setup);
    network_->connect(*qp_a_, *qp_b_, how);
    std::tie(memory_a_, key_a_) = network_->a.memory(1 << 20);
    std::tie(memory_b_, key_b_) = network_->b.memory(1 << 20);
    std::mt19937 random(1);
    std::ranges::generate(memory_a_, [&] { return static_cast<std::byte>(random()); });
  }

  // Posts one send at A. 0 or errno.
  int send(std::uint64_t id, std::size_t offset, std::size_t size,
           unsigned flags = IBV_SEND_SIGNALED, ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory_a_.data() + offset),
                static_cast<std::uint32_t>(size), key_a_.value()};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp_a_, &wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  // Posts one receive at B.
  int receive(std::uint64_t id, std::size_t offset, std::size_t size) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory_b_.data() + offset),
                static_cast<std::uint32_t>(size), key_b_.value()};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp_b_, &wr, &bad);
  }
  // Runs until all is quiet; completions are kept.
  void run() {
    network_->run(
        [&](End& end, std::span<const ibv_wc> completions) {
          auto& list = &end == &network_->a ? done_a_ : done_b_;
          if (&end == &network_->a) completed_a_ = network_->clock.now();
          list.insert(list.end(), completions.begin(), completions.end());
        },
        kLater);
  }

  std::optional<Network> network_;
  QueuePair* qp_a_ = nullptr;
  QueuePair* qp_b_ = nullptr;
  std::span<std::byte> memory_a_;
  std::span<std::byte> memory_b_;
  LocalKey key_a_;
  LocalKey key_b_;
  std::vector<ibv_wc> done_a_;
  std::vector<ibv_wc> done_b_;
  TimePoint completed_a_;
};

TEST_F(EngineTest, CarriesMessagesOfEverySize) {
  for (const bool v6 : {false, true}) {
    for (const std::size_t size : {0U, 1U, 1023U, 1024U, 1025U, 65520U}) {
      make({.v6 = v6});
      done_a_.clear();
      done_b_.clear();
      ASSERT_EQ(receive(7, 0, 70000), 0);
      ASSERT_EQ(send(9, 13, size), 0);
      run();
      ASSERT_EQ(done_a_.size(), 1U);
      ASSERT_EQ(done_b_.size(), 1U);
      EXPECT_EQ(done_a_[0].wr_id, 9U);
      EXPECT_EQ(done_a_[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(done_b_[0].wr_id, 7U);
      EXPECT_EQ(done_b_[0].byte_len, size);
      EXPECT_TRUE(std::ranges::equal(memory_b_.first(size), memory_a_.subspan(13, size)));
      EXPECT_EQ(network_->b.communications, std::vector{QpNumber(0x22)});
    }
  }
}

TEST_F(EngineTest, SourceMayBeManyPiecesAndInlineDataIsCopied) {
  make();
  ASSERT_EQ(receive(1, 0, 70000), 0);
  ASSERT_EQ(receive(2, 70000, 70000), 0);
  std::array<ibv_sge, 4> list{};
  for (std::size_t i = 0; i < list.size(); ++i) {
    list.at(i) = {std::bit_cast<std::uint64_t>(memory_a_.data() + i * 1000),
                  static_cast<std::uint32_t>(i * 333), key_a_.value()};
  }
  ibv_send_wr wr{};
  wr.sg_list = list.data();
  wr.num_sge = 4;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp_a_, &wr, &bad), 0);
  std::array<char, 5> text{'h', 'e', 'l', 'l', 'o'};
  ibv_sge unregistered{std::bit_cast<std::uint64_t>(text.data()), 5, 0};
  wr.sg_list = &unregistered;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  ASSERT_EQ(ibv_post_send(qp_a_, &wr, &bad), 0);
  text.fill('x');
  run();
  ASSERT_EQ(done_b_.size(), 2U);
  EXPECT_EQ(done_b_[0].byte_len, 333U * 6);
  EXPECT_TRUE(std::ranges::equal(memory_b_.first(333), memory_a_.subspan(1000, 333)));
  EXPECT_TRUE(std::ranges::equal(memory_b_.subspan(333, 666), memory_a_.subspan(2000, 666)));
  EXPECT_TRUE(std::ranges::equal(memory_b_.subspan(999, 999), memory_a_.subspan(3000, 999)));
  EXPECT_EQ(std::memcmp(memory_b_.data() + 70000, "hello", 5), 0);
  EXPECT_EQ(done_a_.size(), 1U);
}

// --- posts that fail ---

TEST_F(EngineTest, PostsFailAsVerbsDo) {
  make({}, {}, 2);
  EXPECT_EQ(send(1, 0, 1, 0, IBV_WR_RDMA_WRITE), EINVAL);
  EXPECT_EQ(send(1, 0, 1, 0, IBV_WR_RDMA_READ), EINVAL);
  EXPECT_EQ(send(1, 0, 65, IBV_SEND_INLINE), EINVAL);
  std::array<ibv_sge, 5> list{};
  ibv_send_wr wr{};
  wr.sg_list = list.data();
  wr.num_sge = 5;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp_a_, &wr, &bad), EINVAL);
  ibv_recv_wr receive_wr{};
  receive_wr.sg_list = list.data();
  receive_wr.num_sge = 2;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(qp_b_, &receive_wr, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, &receive_wr);
  EXPECT_EQ(send(1, 0, 1), 0);
  EXPECT_EQ(send(2, 0, 1), 0);
  EXPECT_EQ(send(3, 0, 1), ENOMEM);
  EXPECT_EQ(receive(1, 0, 1), 0);
  EXPECT_EQ(receive(2, 0, 1), 0);
  EXPECT_EQ(receive(3, 0, 1), ENOMEM);
  run();
  EXPECT_EQ(done_a_.size(), 2U);
  EXPECT_EQ(send(3, 0, 1), 0);
}

TEST_F(EngineTest, AChainStopsAtTheRequestThatFails) {
  make({}, {}, 2);
  ASSERT_EQ(receive(1, 0, 8), 0);
  ibv_sge sge{std::bit_cast<std::uint64_t>(memory_a_.data()), 1, key_a_.value()};
  std::array<ibv_send_wr, 3> chain{};
  for (std::size_t i = 0; i < chain.size(); ++i) {
    chain.at(i).wr_id = i;
    chain.at(i).sg_list = &sge;
    chain.at(i).num_sge = 1;
    chain.at(i).opcode = i == 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    chain.at(i).next = i < 2 ? &chain.at(i + 1) : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp_a_, chain.data(), &bad), EINVAL);
  EXPECT_EQ(bad, &chain[1]);
  run();
  EXPECT_EQ(done_b_.size(), 1U);
}

TEST_F(EngineTest, SendsNeedRts) {
  make();
  QueuePairSetup setup;
  setup.number = QpNumber(0x33);
  setup.send_depth = setup.receive_depth = 4;
  qp_a_ = &network_->a.add_queue_pair(setup);
  EXPECT_EQ(send(1, 0, 1), EINVAL);
  qp_a_->connect_receive(Path(network_->a.local, network_->b.local), {QpNumber(0x22), Psn(1)});
  EXPECT_EQ(send(1, 0, 1), EINVAL);
  qp_a_->to_error();
  EXPECT_EQ(send(1, 0, 1, 0), 0);
  run();
  ASSERT_EQ(done_a_.size(), 1U);
  EXPECT_EQ(done_a_[0].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(EngineTest, UnregisteredMemoryCompletesWithAProtectionError) {
  make();
  key_a_ = LocalKey(key_a_.value() ^ 1U);
  ASSERT_EQ(send(1, 0, 1), 0);
  run();
  ASSERT_EQ(done_a_.size(), 1U);
  EXPECT_EQ(done_a_[0].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(qp_a_->state, IBV_QPS_ERR);
  EXPECT_EQ(network_->a.failures.size(), 1U);
}

TEST_F(EngineTest, MemoryIsCheckedToTheByte) {
  MemoryTable table;
  std::vector<std::byte> bytes(100);
  const LocalKey key = *table.add(bytes);
  const auto covers = [&](std::int64_t offset, std::uint32_t length, std::uint32_t lkey) {
    return table.covers(
        {std::bit_cast<std::uint64_t>(bytes.data()) + static_cast<std::uint64_t>(offset), length,
         lkey});
  };
  EXPECT_TRUE(covers(0, 100, key.value()));
  EXPECT_TRUE(covers(99, 1, key.value()));
  EXPECT_TRUE(covers(500, 0, 0));
  EXPECT_FALSE(covers(0, 101, key.value()));
  EXPECT_FALSE(covers(-1, 1, key.value()));
  EXPECT_FALSE(covers(100, 1, key.value()));
  EXPECT_FALSE(covers(0, 1, 0));
  EXPECT_FALSE(covers(0, 1, 0xffffffff));
  table.remove(key);
  EXPECT_FALSE(covers(0, 1, key.value()));
  const LocalKey again = *table.add(bytes);
  EXPECT_NE(again, key);
  EXPECT_FALSE(covers(0, 1, key.value()));
  EXPECT_TRUE(covers(0, 1, again.value()));
}

// --- errors ---

TEST_F(EngineTest, TooLongAMessageFailsBothEnds) {
  make();
  ASSERT_EQ(receive(1, 0, 10), 0);
  ASSERT_EQ(receive(2, 0, 10), 0);
  ASSERT_EQ(send(1, 0, 5), 0);
  run();
  ASSERT_EQ(send(2, 0, 11), 0);
  ASSERT_EQ(send(3, 0, 5), 0);
  run();
  ASSERT_EQ(done_a_.size(), 3U);
  EXPECT_EQ(done_a_[1].status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(done_a_[2].status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(done_b_.size(), 2U);
  EXPECT_EQ(done_b_[1].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(done_b_[1].wr_id, 2U);
  EXPECT_EQ(qp_a_->cause(), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(qp_b_->cause(), IBV_WC_LOC_LEN_ERR);
}

TEST_F(EngineTest, ErrorFlushesInOrderAndIsSilent) {
  make();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(receive(i, 0, 10), 0);
  qp_b_->to_error();
  run();
  ASSERT_EQ(done_b_.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done_b_[i].wr_id, i);
    EXPECT_EQ(done_b_[i].status, IBV_WC_WR_FLUSH_ERR);
  }
  ASSERT_EQ(receive(9, 0, 10), 0);
  ASSERT_EQ(send(1, 0, 1), 0);
  ASSERT_EQ(send(2, 0, 1), 0);
  run();
  EXPECT_EQ(done_b_.size(), 4U);
  EXPECT_EQ(done_b_[3].wr_id, 9U);
  ASSERT_EQ(done_a_.size(), 2U);
  EXPECT_EQ(done_a_[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(done_a_[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(network_->b.wire.sent_bytes(), 0U);
  EXPECT_GT(network_->b.worker.engine().counters().rejected(Reject::WrongState), 6U);
}

TEST_F(EngineTest, RemovedQueuePairIsNotHeard) {
  make();
  ASSERT_EQ(receive(1, 0, 10), 0);
  network_->b.worker.engine().remove(QpNumber(0x22));
  ASSERT_EQ(send(1, 0, 1), 0);
  run();
  EXPECT_EQ(done_a_[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GT(network_->b.worker.engine().counters().rejected(Reject::UnknownQp), 6U);
}

TEST_F(EngineTest, ReceiverNotReadyIsWaitedFor) {
  Network::Connect how;
  how.min_rnr_timer = 18;  // 5.12 ms
  make({}, how);
  ASSERT_EQ(send(1, 0, 5000), 0);
  network_->run([](End&, std::span<const ibv_wc>) {}, TimePoint{} + 2ms);
  EXPECT_EQ(qp_a_->requester().counters().rnr_naks, 1U);
  ASSERT_EQ(receive(1, 0, 5000), 0);
  run();
  ASSERT_EQ(done_a_.size(), 1U);
  EXPECT_EQ(done_a_[0].status, IBV_WC_SUCCESS);
  EXPECT_GE(completed_a_, TimePoint{} + 5120us);
  EXPECT_LE(completed_a_, TimePoint{} + 5300us + RcTuning{}.ack_delay);
}

TEST_F(EngineTest, RnrEndsAtItsRetries) {
  make();
  ASSERT_EQ(send(1, 0, 1), 0);
  run();
  ASSERT_EQ(done_a_.size(), 1U);
  EXPECT_EQ(done_a_[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(qp_b_->responder().counters().rnr_naks, 7U);
}

// --- shared receive queue ---

TEST_F(EngineTest, SharedReceivesServeTwoQueuePairs) {
  make();
  SharedReceives shared(network_->b.context, network_->b.table, 16);
  QueuePairSetup setup;
  setup.send_depth = setup.receive_depth = 16;
  setup.number = QpNumber(0x41);
  QueuePair& a1 = network_->a.add_queue_pair(setup);
  setup.number = QpNumber(0x42);
  QueuePair& a2 = network_->a.add_queue_pair(setup);
  setup.shared = &shared.queue();
  setup.srq = &shared;
  setup.number = QpNumber(0x51);
  QueuePair& b1 = network_->b.add_queue_pair(setup);
  setup.number = QpNumber(0x52);
  QueuePair& b2 = network_->b.add_queue_pair(setup);
  network_->connect(a1, b1, {});
  network_->connect(a2, b2, {});
  for (std::uint64_t i = 0; i < 4; ++i) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory_b_.data() + i * 8192), 8192, key_b_.value()};
    ibv_recv_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(&shared, &wr, &bad), 0);
  }
  ibv_recv_wr* bad = nullptr;
  ibv_recv_wr wr{};
  EXPECT_EQ(ibv_post_recv(&b1, &wr, &bad), EINVAL);
  for (QueuePair* const qp : {&a1, &a2, &a1}) {
    qp_a_ = qp;
    ASSERT_EQ(send(1, 0, 8000), 0);
  }
  run();
  EXPECT_EQ(done_a_.size(), 3U);
  std::map<std::uint32_t, int> by_qp;
  for (const ibv_wc& wc : done_b_) {
    EXPECT_EQ(wc.byte_len, 8000U);
    ++by_qp[wc.qp_num];
    EXPECT_TRUE(
        std::ranges::equal(memory_b_.subspan(wc.wr_id * 8192, 8000), memory_a_.first(8000)));
  }
  EXPECT_EQ(by_qp, (std::map<std::uint32_t, int>{{0x51, 2}, {0x52, 1}}));
  // The receive posted last, whose memory is warmest, is taken first.
  EXPECT_EQ(done_b_[0].wr_id, 3U);
  // An error leaves the shared queue's receives alone.
  b1.to_error();
  run();
  EXPECT_EQ(done_b_.size(), 3U);
  EXPECT_FALSE(shared.queue().empty());
}

// --- arming ---

class CompletionRingTest : public testing::Test {
 protected:
  void push(bool solicited, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc completion{};
    completion.status = status;
    ring_.push(completion, solicited);
  }
  CompletionRing ring_{8};
  std::array<ibv_wc, 8> out_;
};

TEST_F(CompletionRingTest, RingsOnceForTheNextCompletion) {
  push(false);
  EXPECT_EQ(ring_.pop(out_), 1U);
  EXPECT_FALSE(ring_.take_event());
  ring_.arm(false);
  EXPECT_FALSE(ring_.take_event());
  push(false);
  EXPECT_TRUE(ring_.take_event());
  push(false);
  EXPECT_FALSE(ring_.take_event());
}

TEST_F(CompletionRingTest, SolicitedOnlyWaitsForTheSolicited) {
  ring_.arm(true);
  push(false);
  EXPECT_FALSE(ring_.take_event());
  push(true);
  EXPECT_TRUE(ring_.take_event());
  EXPECT_EQ(ring_.pop(out_), 2U);
  ring_.arm(true);
  push(false, IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(ring_.take_event());
}

TEST_F(CompletionRingTest, WhatIsTakenOutAtOnceRingsNobody) {
  ring_.arm(true);
  push(true);
  EXPECT_EQ(ring_.pop(out_), 1U);
  EXPECT_FALSE(ring_.take_event());
  push(true);
  EXPECT_TRUE(ring_.take_event());
}

TEST_F(EngineTest, PollThatLeavesCompletionsRings) {
  make();
  End& b = network_->b;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(receive(i, 0, 8), 0);
  ASSERT_EQ(ibv_req_notify_cq(&b.worker, 0), 0);
  ASSERT_EQ(send(1, 0, 1), 0);
  ASSERT_EQ(send(2, 0, 1), 0);
  network_->clock.advance_to(TimePoint{} + 1s);
  ibv_wc completion;
  EXPECT_EQ(ibv_poll_cq(&b.worker, 1, &completion), 1);
  EXPECT_EQ(b.rings, 1);
}

TEST_F(EngineTest, PollAfterArmingLooksAtTheWireUnlessOneHas) {
  make();
  End& b = network_->b;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(receive(i, 0, 8), 0);
  ibv_wc completion;
  const auto arm_and_poll = [&] {
    EXPECT_EQ(ibv_req_notify_cq(&b.worker, 0), 0);
    return ibv_poll_cq(&b.worker, 1, &completion);
  };
  const auto arrives = [&] {
    EXPECT_EQ(send(1, 0, 1), 0);
    network_->clock.advance_to(network_->clock.now() + 1s);
  };
  arrives();
  EXPECT_EQ(arm_and_poll(), 1);
  arrives();
  EXPECT_EQ(arm_and_poll(), 0);
  EXPECT_EQ(arm_and_poll(), 1);
  arrives();
  b.worker.disarm();  // the caller was woken
  EXPECT_EQ(arm_and_poll(), 1);
}

TEST_F(EngineTest, ArmingAQueueThatIsNotEmptyRings) {
  make();
  End& b = network_->b;
  CompletionRing& ring = b.worker.engine().completions();
  ring.push(ibv_wc{}, false);
  ASSERT_EQ(ibv_req_notify_cq(&b.worker, 0), 0);
  EXPECT_EQ(b.rings, 1);
}

TEST_F(EngineTest, WhileArmedTheAlarmIsKeptAtTheNextTimer) {
  constexpr Duration kTimeout = RcTuning{}.first_timeout;
  make();
  End& a = network_->a;
  ASSERT_EQ(send(1, 0, 1), 0);
  EXPECT_FALSE(a.alarm);
  ASSERT_EQ(ibv_req_notify_cq(&a.worker, 0), 0);
  EXPECT_EQ(a.alarm, TimePoint{} + kTimeout);
  a.alarm.reset();
  network_->clock.advance_to(TimePoint{} + kTimeout / 2);
  ASSERT_EQ(send(2, 0, 1), 0);  // later than what is set: left alone
  EXPECT_FALSE(a.alarm);
  network_->clock.advance_to(TimePoint{} + kTimeout + kTimeout / 2);
  ASSERT_EQ(send(3, 0, 1), 0);
  EXPECT_EQ(a.alarm, TimePoint{} + kTimeout);  // overdue: at once
  a.alarm.reset();
  a.worker.disarm();
  network_->clock.advance_to(TimePoint{} + 9 * kTimeout);
  ASSERT_EQ(send(4, 0, 1), 0);
  EXPECT_FALSE(a.alarm);
}

TEST_F(EngineTest, OverrunIsCounted) {
  CompletionRing ring(2);
  for (int i = 0; i < 3; ++i) ring.push(ibv_wc{}, false);
  EXPECT_EQ(ring.overruns(), 1U);
  std::array<ibv_wc, 4> out;
  EXPECT_EQ(ring.pop(out), 2U);
  EXPECT_TRUE(ring.empty());
}

// --- handing over ---

TEST_F(EngineTest, HandedOverWorkIsDoneBeforeTheNextCall) {
  make();
  Worker& worker = network_->a.worker;
  QueuePairSetup setup;
  setup.number = QpNumber(0x33);
  setup.send_depth = setup.receive_depth = 4;
  setup.cq = &worker;
  setup.context = &network_->a.context;
  const auto qp =
      std::make_shared<QueuePair>(setup, worker.engine().completions(), network_->a.table);
  worker.hand_over([&](Engine& engine) {
    engine.add(qp);
    qp->connect_receive(Path(network_->a.local, network_->b.local), {QpNumber(0x22), Psn(1)});
    RequesterConfig config;
    config.window_limit = 1 << 20;
    qp->connect_send(config);
  });
  EXPECT_EQ(network_->a.rings, 1);
  qp_a_ = qp.get();
  EXPECT_EQ(send(1, 0, 1), 0);
  worker.settle();
}

// --- faults reach only what they are meant for ---

TEST_F(EngineTest, PacketsFromElsewhereAreDropped) {
  make();
  ASSERT_EQ(receive(1, 0, 8), 0);
  network_->a.wire.connect(network_->b.wire, {*IpAddress::parse("192.0.2.9"), 0xc001, 0});
  ASSERT_EQ(send(1, 0, 1), 0);
  network_->run([](End&, std::span<const ibv_wc>) {}, TimePoint{} + 500us);
  EXPECT_EQ(network_->b.worker.engine().counters().rejected(Reject::WrongSource), 1U);
  EXPECT_EQ(network_->b.wire.sent_bytes(), 0U);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
