#include "verbs/soft/responder.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/verbs/soft/rc_script.h"

namespace ipoverbs::verbs::soft {
namespace {

using script::kMtu;
using script::request;
using script::take;
using enum Opcode;

class ResponderTest : public testing::Test {
 protected:
  ResponderTest() {
    ResponderConfig config;
    config.source = QpNumber(0x33);
    config.expected = Psn(10);
    config.mtu = kMtu;
    config.min_rnr_timer = 12;
    responder_.connect(config);
    std::iota(reinterpret_cast<std::uint8_t*>(data_.data()),
              reinterpret_cast<std::uint8_t*>(data_.data() + data_.size()), std::uint8_t{0});
  }

  // `size` bytes of receive memory, from where the last one ended.
  void post(std::uint64_t id, std::size_t size) {
    ibv_sge sge = memory_.sge(posted_, size);
    posted_ += size;
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(queue_.post(wr, table_), 0);
  }

  [[nodiscard]] std::span<const std::byte> bytes(std::size_t n) const {
    return std::span(data_).first(n);
  }
  // What the packet is answered with.
  std::string answer(const Packet& packet) {
    failure_ = responder_.on_request(packet);
    return answer();
  }
  std::string answer() {
    responder_.transmit(now_, path_, burst_, company_);
    return take(burst_);
  }
  void hear(const Packet& packet) { failure_ = responder_.on_request(packet); }
  std::string completed() { return take(completions_); }

  MemoryTable table_;
  script::Memory memory_{table_, 65536};
  std::size_t posted_ = 0;
  CompletionRing completions_{64};
  ReceiveQueue queue_{16, 4};
  Responder responder_{queue_, completions_, QpNumber(0x11)};
  std::vector<std::byte> data_ = std::vector<std::byte>(8192);
  Path path_ = script::path();
  Burst burst_;
  Responder::Failure failure_;
  TimePoint now_{};
  bool company_ = false;
};

// One that keeps back an ACK that is asked for.
class PatientResponderTest : public ResponderTest {
 protected:
  PatientResponderTest() {
    ResponderConfig config;
    config.source = QpNumber(0x33);
    config.expected = Psn(10);
    config.mtu = kMtu;
    config.ack_delay = kDelay;
    responder_.connect(config);
    for (std::uint64_t id = 1; id < 8; ++id) post(id, 64);
  }
  static constexpr Duration kDelay = std::chrono::microseconds(300);
};

TEST_F(PatientResponderTest, LoneAckWaitsItsTime) {
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(4), true)), "");
  EXPECT_EQ(responder_.deadline(), now_ + kDelay);
  now_ += kDelay - Duration{1};
  EXPECT_EQ(answer(), "");
  now_ += Duration{1};
  EXPECT_EQ(answer(), "ack 10 msn 1");
  EXPECT_EQ(responder_.deadline(), std::nullopt);
  EXPECT_EQ(answer(), "");
}

TEST_F(PatientResponderTest, LoneAckGoesWithARequest) {
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(4), true)), "");
  company_ = true;
  EXPECT_EQ(answer(), "ack 10 msn 1");
  EXPECT_EQ(responder_.deadline(), std::nullopt);
}

TEST_F(PatientResponderTest, SecondAskIsAnsweredAtOnce) {
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(4), true)), "");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(4))), "");
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(4), true)), "ack 12 msn 3");
  EXPECT_EQ(answer(request(SendOnly, 13, bytes(4), true)), "");
  EXPECT_EQ(responder_.deadline(), now_ + kDelay);
}

TEST_F(PatientResponderTest, ManyBytesAreAnsweredAtOnce) {
  post(8, 2 * kMtu);
  while (queue_.front().id != 8) queue_.pop();
  EXPECT_EQ(answer(request(SendFirst, 10, bytes(kMtu))), "");
  EXPECT_EQ(answer(request(SendLast, 11, bytes(1), true)), "ack 11 msn 1");
}

TEST_F(PatientResponderTest, WhatTellsOfLossDoesNotWait) {
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(4))), "");
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(4), true)), "ack 10 msn 1");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(4), true)), "");
  EXPECT_EQ(answer(request(SendOnly, 13, bytes(4), true)), "nak(0) 12");
  EXPECT_EQ(responder_.deadline(), std::nullopt);
}

TEST_F(ResponderTest, PutsAMessageTogether) {
  post(1, 1000);
  EXPECT_EQ(answer(request(SendFirst, 10, bytes(kMtu))), "");
  EXPECT_EQ(answer(request(SendMiddle, 11, std::span(data_).subspan(kMtu, kMtu))), "");
  EXPECT_EQ(completed(), "");
  EXPECT_EQ(answer(request(SendLast, 12, std::span(data_).subspan(2 * kMtu, 5), true)),
            "ack 12 msn 1");
  EXPECT_EQ(completed(), "1 got 517");
  EXPECT_TRUE(std::ranges::equal(memory_.bytes().first(517), bytes(517)));
}

TEST_F(ResponderTest, ScattersOverTheList) {
  std::array<ibv_sge, 4> list{memory_.sge(0, 3), memory_.sge(100, 0), memory_.sge(200, 300),
                              memory_.sge(600, 10)};
  ibv_recv_wr wr{};
  wr.sg_list = list.data();
  wr.num_sge = 4;
  ASSERT_EQ(queue_.post(wr, table_), 0);
  hear(request(SendFirst, 10, bytes(kMtu)));
  hear(request(SendLast, 11, std::span(data_).subspan(kMtu, 57)));
  EXPECT_EQ(completed(), "0 got 313");
  EXPECT_TRUE(std::ranges::equal(memory_.bytes().first(3), bytes(3)));
  EXPECT_TRUE(
      std::ranges::equal(memory_.bytes().subspan(200, 300), std::span(data_).subspan(3, 300)));
  EXPECT_TRUE(
      std::ranges::equal(memory_.bytes().subspan(600, 10), std::span(data_).subspan(303, 10)));
  EXPECT_EQ(memory_.bytes()[610], std::byte{0});
}

TEST_F(ResponderTest, DeliversZeroBytesAndImmediateData) {
  post(1, 0);
  Packet packet = request(SendOnlyImm, 10, {});
  packet.immediate = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  hear(packet);
  ibv_wc wc{};
  ASSERT_EQ(completions_.pop({&wc, 1}), 1U);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(std::bit_cast<Be32>(wc.imm_data).value(), 0x01020304U);
  EXPECT_EQ(wc.byte_len, 0U);
  EXPECT_EQ(wc.qp_num, 0x11U);
  EXPECT_EQ(wc.src_qp, 0x33U);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
}

TEST_F(ResponderTest, AcknowledgesOnceForABatch) {
  for (std::uint64_t i = 0; i < 3; ++i) post(i, 8);
  hear(request(SendOnly, 10, bytes(8), true));
  hear(request(SendOnly, 11, bytes(8), true));
  hear(request(SendOnly, 12, bytes(8)));
  EXPECT_EQ(answer(), "ack 12 msn 3");
  EXPECT_EQ(answer(), "");
}

TEST_F(ResponderTest, SaysNothingUnasked) {
  post(1, 8);
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8))), "");
  EXPECT_EQ(completed(), "1 got 8");
}

TEST_F(ResponderTest, PastPacketIsDroppedAndAcknowledgedAgain) {
  post(1, 8);
  post(2, 8);
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8), true)), "ack 10 msn 1");
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8))), "ack 10 msn 1");
  EXPECT_EQ(answer(request(SendOnly, 5, bytes(8))), "ack 10 msn 1");
  EXPECT_EQ(completed(), "1 got 8");
  EXPECT_EQ(responder_.counters().duplicates, 2U);
  EXPECT_EQ(answer(request(ReadRequest, 9, {})), "");
}

TEST_F(ResponderTest, FuturePacketDrawsOneNak) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i, 8);
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(8), true)), "nak(0) 10");
  EXPECT_EQ(answer(request(SendOnly, 13, bytes(8), true)), "");
  EXPECT_EQ(answer(request(SendOnly, 14, bytes(8), true)), "");
  EXPECT_EQ(completed(), "");
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8))), "ack 10 msn 1");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8), true)), "ack 11 msn 2");
  EXPECT_EQ(answer(request(SendOnly, 13, bytes(8))), "nak(0) 12");
  EXPECT_EQ(completed(), "0 got 8, 1 got 8");
}

TEST_F(ResponderTest, AnotherGapIsToldAfterTheFirstIsSaidToBeClosed) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i, 8);
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8))), "nak(0) 10");
  hear(request(SendOnly, 10, bytes(8)));
  hear(request(SendOnly, 12, bytes(8)));
  EXPECT_EQ(answer(), "ack 10 msn 1, nak(0) 11");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8))), "ack 11 msn 2");
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(8))), "");
}

TEST_F(ResponderTest, NaksAgainWhenTheSenderHasGoneBackInVain) {
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8))), "nak(0) 10");
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(8))), "");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8))), "nak(0) 10");
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(8))), "nak(0) 10");
  EXPECT_EQ(answer(request(SendOnly, 13, bytes(8))), "");
}

TEST_F(ResponderTest, ReorderedWithinABatchTheNakNamesWhatWasDropped) {
  for (std::uint64_t i = 0; i < 4; ++i) post(i, 8);
  hear(request(SendOnly, 11, bytes(8)));
  hear(request(SendOnly, 10, bytes(8)));
  EXPECT_EQ(answer(), "nak(0) 11");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8))), "ack 11 msn 2");
}

TEST_F(ResponderTest, WithoutAReceiveItIsNotReady) {
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8), true)), "rnr(12) 10");
  EXPECT_EQ(answer(request(SendOnly, 11, bytes(8), true)), "");
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8), true)), "rnr(12) 10");
  post(1, 8);
  post(2, 8);
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8), true)), "ack 10 msn 1");
  EXPECT_EQ(answer(request(SendOnly, 12, bytes(8), true)), "nak(0) 11");
  EXPECT_FALSE(failure_);
}

TEST_F(ResponderTest, RnrTellsWhatCameBefore) {
  post(1, 8);
  hear(request(SendOnly, 10, bytes(8), true));
  hear(request(SendOnly, 11, bytes(8), true));
  EXPECT_EQ(answer(), "rnr(12) 11");
}

TEST_F(ResponderTest, TakesTheReceiveAtTheFirstPacketAndKeepsIt) {
  post(1, 1000);
  hear(request(SendFirst, 10, bytes(kMtu)));
  EXPECT_TRUE(queue_.empty());
  post(2, 1000);
  hear(request(SendLast, 11, bytes(1)));
  EXPECT_EQ(completed(), "1 got 257");
}

// Each row: a packet that may not come now, after those given.
TEST_F(ResponderTest, RefusesWhatMayNotCome) {
  struct Row {
    const char* name;
    bool in_message;
    Opcode opcode;
    std::size_t size;
  };
  for (const Row& row :
       {Row{"middle without first", false, SendMiddle, kMtu},
        Row{"last without first", false, SendLast, 1},
        Row{"first within a message", true, SendFirst, kMtu},
        Row{"only within a message", true, SendOnly, 1},
        Row{"short first", false, SendFirst, kMtu - 4},
        Row{"long first", false, SendFirst, kMtu + 4},
        Row{"short middle", true, SendMiddle, kMtu - 4}, Row{"empty last", true, SendLast, 0},
        Row{"long last", true, SendLast, kMtu + 4}, Row{"long only", false, SendOnly, kMtu + 4},
        Row{"read", false, ReadRequest, 0}, Row{"write", false, WriteOnly, 8},
        Row{"atomic", false, FetchAdd, 0}, Row{"invalidate", false, SendOnlyInvalidate, 8}}) {
    Responder responder(queue_, completions_, QpNumber(0x11));
    ResponderConfig config;
    config.expected = Psn(10);
    config.mtu = kMtu;
    responder.connect(config);
    post(7, 1024);
    std::uint32_t psn = 10;
    if (row.in_message) {
      EXPECT_FALSE(responder.on_request(request(SendFirst, psn++, bytes(kMtu))));
    }
    EXPECT_EQ(responder.on_request(request(row.opcode, psn, bytes(row.size))), IBV_WC_WR_FLUSH_ERR)
        << row.name;
    responder.transmit({}, path_, burst_, false);
    EXPECT_EQ(take(burst_), fmt::format("nak(1) {}", psn)) << row.name;
    responder.flush(IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(completed(), row.in_message ? "7 status 5" : "") << row.name;
    if (!row.in_message) queue_.pop();
  }
}

TEST_F(ResponderTest, MessageLongerThanItsReceiveFailsIt) {
  post(1, kMtu + 3);
  hear(request(SendFirst, 10, bytes(kMtu)));
  EXPECT_EQ(answer(request(SendLast, 11, bytes(4))), "nak(1) 11");
  EXPECT_EQ(failure_, IBV_WC_LOC_LEN_ERR);
  responder_.flush(*failure_);
  EXPECT_EQ(completed(), "1 status 1");
  EXPECT_EQ(memory_.bytes()[kMtu], std::byte{0});
}

TEST_F(ResponderTest, UnregisteredReceiveFailsWhenItIsNeeded) {
  ibv_sge sge = memory_.sge(0, 8);
  sge.lkey ^= 1;
  ibv_recv_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ASSERT_EQ(queue_.post(wr, table_), 0);
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8))), "nak(3) 10");
  EXPECT_EQ(failure_, IBV_WC_LOC_PROT_ERR);
  responder_.flush(*failure_);
  EXPECT_EQ(completed(), "1 status 4");
}

TEST_F(ResponderTest, CountsMessagesInTheMsnAndWraps) {
  post(1, 8);
  EXPECT_EQ(answer(request(SendOnly, 9, bytes(8))), "ack 9 msn 0");
  EXPECT_EQ(answer(request(SendOnly, 10, bytes(8), true)), "ack 10 msn 1");
}

// --- congestion ---

TEST_F(ResponderTest, CongestionIsToldBeforeTheAnswer) {
  post(1, 8);
  responder_.on_congestion(script::kStart);
  hear(request(SendOnly, 10, bytes(8), true));
  responder_.transmit(now_, path_, burst_, company_);
  ASSERT_EQ(burst_.segments().size(), 2U);
  std::vector<std::byte> datagram(burst_.segments()[0].size());
  burst_.write(burst_.segments()[0], 0, datagram);
  EXPECT_EQ(take(burst_), "cnp, ack 10 msn 1");
  // Annex A17.9.3: BECN, 16 reserved bytes.
  const auto packet = parse(datagram);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bth.congestion, 0x40);
  EXPECT_EQ(packet->bth.qp(), QpNumber(0x33));
  EXPECT_EQ(packet->payload.size(), 16U);
  EXPECT_TRUE(std::ranges::all_of(packet->payload, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(answer(), "");
}

TEST_F(ResponderTest, CongestionIsToldOnlySoOften) {
  using namespace std::chrono_literals;
  const Duration notify = RcTuning{}.notify;
  std::string told;
  for (const Duration at : {0ns, 1ns, notify - 1ns, notify, notify + 1ns, 3 * notify}) {
    responder_.on_congestion(script::kStart + at);
    told += answer() + ";";
  }
  EXPECT_EQ(told, "cnp;;;cnp;;cnp;");
  EXPECT_EQ(responder_.counters().notifications, 3U);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
