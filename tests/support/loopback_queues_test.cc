// The data path: what is carried, what is refused, what completes and what wakes.
#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/loopback_device.h"
#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

using Delivery = LoopbackNetwork::Delivery;

constexpr unsigned int kUnsignalled = 0;

LoopbackOptions without_srq() {
  LoopbackOptions options;
  options.capabilities.max_srq_wr = 0;
  return options;
}

// Two connected hosts, A and B.
struct LoopbackQueues : testing::Test {
  LoopbackQueues() { establish(a, b); }
  LoopbackNetwork network;
  Host a{network, kA};
  Host b{network, kB};
};

// The same without shared receive queues.
struct LoopbackOwnReceives : testing::Test {
  LoopbackOwnReceives() { establish(a, b); }
  LoopbackNetwork network;
  Host a{network, kA, without_srq()};
  Host b{network, kB, without_srq()};
};

TEST_F(LoopbackQueues, GatherAndScatter) {
  ASSERT_EQ(b.receive(7), 0);
  a.write(0, "over ");
  a.write(1, "verbs");
  ASSERT_EQ(a.send(3, std::vector{a.sge(0, 5), a.sge(1, 5)}), 0);
  EXPECT_EQ(a.poll(), Lines{"send 3"});
  EXPECT_EQ(b.poll(), Lines{"receive 7 of 10 bytes"});
  EXPECT_EQ(b.read(7, 11), std::string("over verbs\0", 11));
  EXPECT_EQ(network.rnr_count(), 0U);
}

TEST_F(LoopbackQueues, ReceiveOfTwoPiecesIsRefused) {
  std::array pieces{b.sge(1, 3), b.sge(3, 5)};
  ibv_recv_wr request{.wr_id = 1, .next = nullptr, .sg_list = pieces.data(), .num_sge = 2};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(b.shared->raw(), &request, &bad), EINVAL);
  EXPECT_EQ(bad, &request);
  EXPECT_EQ(a.send(0, "waits"), 0);
  EXPECT_EQ(b.poll(), Lines{});
}

TEST_F(LoopbackOwnReceives, AreUsedInTheOrderOfPosting) {
  ASSERT_EQ(b.receive(5), 0);
  ASSERT_EQ(b.receive(4), 0);
  ASSERT_EQ(a.send(0, "one"), 0);
  ASSERT_EQ(a.send(1, "three"), 0);
  EXPECT_EQ(b.poll(), (Lines{"receive 5 of 3 bytes", "receive 4 of 5 bytes"}));
  EXPECT_EQ(a.poll(), (Lines{"send 0", "send 1"}));
}

TEST_F(LoopbackOwnReceives, ReceiveSlotIsFreeOnceItsCompletionIsPolled) {
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(b.receive(i), 0);
  EXPECT_EQ(b.receive(16), ENOMEM);
  ASSERT_EQ(a.send(0, "x"), 0);
  EXPECT_EQ(b.receive(16), ENOMEM);
  EXPECT_EQ(b.poll(), Lines{"receive 0 of 1 bytes"});
  EXPECT_EQ(b.receive(16), 0);
  EXPECT_EQ(b.receive(17), ENOMEM);
}

TEST_F(LoopbackQueues, PostReceiveToAQueuePairWithSharedReceivesIsRefused) {
  ibv_sge into = b.sge(0, 1);
  ibv_recv_wr request{.wr_id = 1, .next = nullptr, .sg_list = &into, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(b.qp(), &request, &bad), EINVAL);
  EXPECT_EQ(bad, &request);
}

TEST_F(LoopbackQueues, EmptyMessage) {
  ASSERT_EQ(b.receive(1, 0), 0);
  ASSERT_EQ(a.send(2, std::vector<ibv_sge>{}), 0);
  EXPECT_EQ(a.poll(), Lines{"send 2"});
  EXPECT_EQ(b.poll(), Lines{"receive 1 of 0 bytes"});
}

TEST_F(LoopbackQueues, ImmediateDataArrives) {
  ASSERT_EQ(b.receive(1), 0);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = 0x01020304;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a.qp(), &request, &bad), 0);
  ibv_wc wc{};
  ASSERT_EQ(ibv_poll_cq(b.completions->raw(), 1, &wc), 1);
  EXPECT_EQ(wc.imm_data, 0x01020304U);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.qp_num, b.qp()->qp_num);
  EXPECT_EQ(wc.src_qp, a.qp()->qp_num);
  EXPECT_EQ(a.poll(), Lines{});
}

TEST_F(LoopbackQueues, SignalledCompletionFreesTheSlotsBeforeIt) {
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(b.receive(i), 0);
  for (std::size_t i = 0; i < 15; ++i) ASSERT_EQ(a.send(i, "x", kUnsignalled), 0);
  ASSERT_EQ(a.send(15, "x"), 0);
  EXPECT_EQ(a.send(16, "x"), ENOMEM);
  EXPECT_EQ(a.poll(), Lines{"send 15"});
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(a.send(i, "x", kUnsignalled), 0) << i;
}

TEST_F(LoopbackQueues, OnlyUnsignalledSendsFillTheQueueForGood) {
  for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(b.receive(i), 0);
  for (std::size_t i = 0; i < 16; ++i) ASSERT_EQ(a.send(i, "x", kUnsignalled), 0);
  EXPECT_EQ(b.poll().size(), 16U);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(a.send(16, "x"), ENOMEM);
}

TEST_F(LoopbackQueues, ChainStopsAtTheBadRequest) {
  ASSERT_EQ(b.receive(1), 0);
  ASSERT_EQ(b.receive(2), 0);
  ibv_send_wr third{};
  ibv_send_wr second{};
  second.opcode = IBV_WR_RDMA_WRITE;
  second.next = &third;
  ibv_send_wr first{};
  first.opcode = IBV_WR_SEND;
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(a.qp(), &first, &bad), EINVAL);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(b.poll(), Lines{"receive 1 of 0 bytes"});
}

TEST_F(LoopbackQueues, TooManyPiecesAndInlineDataAreRefused) {
  ASSERT_EQ(b.receive(1), 0);
  EXPECT_EQ(a.send(1, std::vector(5, a.sge(0, 1))), EINVAL);
  EXPECT_EQ(a.send(2, "x", IBV_SEND_SIGNALED | IBV_SEND_INLINE), EINVAL);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(a.send(3, std::vector(4, a.sge(0, 1))), 0);
  EXPECT_EQ(a.poll(), Lines{"send 3"});
}

TEST_F(LoopbackQueues, MessageThatFitsExactlyAndOneThatIsLonger) {
  ASSERT_EQ(b.receive(1, 4), 0);
  ASSERT_EQ(b.receive(2, 4), 0);
  ASSERT_EQ(b.receive(3, 4), 0);
  ASSERT_EQ(a.send(1, "four"), 0);
  EXPECT_EQ(b.poll(), Lines{"receive 1 of 4 bytes"});
  EXPECT_EQ(a.poll(), Lines{"send 1"});
  network.partition(kA, kB);
  ASSERT_EQ(a.send(2, "fives", kUnsignalled), 0);
  ASSERT_EQ(a.send(3, "four", kUnsignalled), 0);
  network.heal(kA, kB);
  EXPECT_EQ(b.poll(), Lines{fmt::format("2: status {}", +IBV_WC_LOC_LEN_ERR)});
  EXPECT_EQ(a.poll(), (Lines{fmt::format("2: status {}", +IBV_WC_REM_INV_REQ_ERR),
                             fmt::format("3: status {}", +IBV_WC_WR_FLUSH_ERR)}));
  EXPECT_EQ(a.qp()->state, IBV_QPS_ERR);
  EXPECT_EQ(b.qp()->state, IBV_QPS_ERR);
}

struct BadMemory {
  const char* what;
  ibv_sge (*spoil)(ibv_sge good);
};
const BadMemory kBadMemory[] = {
    {"unknown key", [](ibv_sge sge) { return ibv_sge{sge.addr, sge.length, sge.lkey + 1}; }},
    {"before the region", [](ibv_sge sge) { return ibv_sge{sge.addr - 1, 1, sge.lkey}; }},
    {"one byte too long",
     [](ibv_sge sge) { return ibv_sge{sge.addr, 64 * Host::kSlot + 1, sge.lkey}; }},
    {"after the region",
     [](ibv_sge sge) { return ibv_sge{sge.addr + 64 * Host::kSlot, 1, sge.lkey}; }},
    {"address that wraps", [](ibv_sge sge) { return ibv_sge{~std::uint64_t{0}, 8, sge.lkey}; }},
};

TEST(LoopbackMemory, WholeRegionCanBeSent) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  ASSERT_EQ(b.receive(0, 64 * Host::kSlot), 0);
  ASSERT_EQ(a.send(0, std::vector{a.sge(0, 64 * Host::kSlot)}), 0);
  EXPECT_EQ(a.poll(), Lines{"send 0"});
}

TEST(LoopbackMemory, KeyOfAnEmptyPieceDoesNotMatter) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  ASSERT_EQ(b.receive(0, ibv_sge{}), 0);
  ASSERT_EQ(a.send(0, std::vector{ibv_sge{}}), 0);
  EXPECT_EQ(a.poll(), Lines{"send 0"});
}

TEST(LoopbackMemory, UnregisteredMemoryOfASendFailsItAndFlushesTheRest) {
  for (const BadMemory& bad : kBadMemory) {
    SCOPED_TRACE(bad.what);
    LoopbackNetwork network;
    Host a(network, kA);
    Host b(network, kB);
    establish(a, b);
    ASSERT_EQ(b.receive(1), 0);
    ASSERT_EQ(a.send(5, std::vector{a.sge(0, 1), bad.spoil(a.sge(0, 1))}, kUnsignalled), 0);
    ASSERT_EQ(a.send(6, "late", kUnsignalled), 0);
    EXPECT_EQ(a.poll(), (Lines{fmt::format("5: status {}", +IBV_WC_LOC_PROT_ERR),
                               fmt::format("6: status {}", +IBV_WC_WR_FLUSH_ERR)}));
    EXPECT_EQ(b.poll(), Lines{});
    EXPECT_EQ(b.qp()->state, IBV_QPS_RTS);
  }
}

TEST(LoopbackMemory, UnregisteredMemoryOfAReceiveFailsBothEnds) {
  for (const BadMemory& bad : kBadMemory) {
    SCOPED_TRACE(bad.what);
    LoopbackNetwork network;
    Host a(network, kA);
    Host b(network, kB);
    establish(a, b);
    ASSERT_EQ(b.receive(1, bad.spoil(b.sge(0, 1))), 0);
    ASSERT_EQ(a.send(5, "x", kUnsignalled), 0);
    EXPECT_EQ(a.poll(), Lines{fmt::format("5: status {}", +IBV_WC_REM_OP_ERR)});
    EXPECT_EQ(b.poll(), Lines{fmt::format("1: status {}", +IBV_WC_LOC_PROT_ERR)});
  }
}

TEST(LoopbackMemory, IsLookedAtWhenTheMessageIsCarried) {
  LoopbackNetwork network(Delivery::Manual);
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  ASSERT_EQ(b.receive(1), 0);
  ASSERT_EQ(b.receive(2), 0);
  ASSERT_EQ(a.send(0, "early"), 0);
  a.write(0, "later");
  EXPECT_EQ(network.deliver(), 1U);
  EXPECT_EQ(b.read(1, 5), "later");
  ASSERT_EQ(a.send(1, "gone"), 0);
  a.region.reset();
  EXPECT_EQ(network.deliver(), 1U);
  EXPECT_EQ(a.poll(), (Lines{"send 0", fmt::format("1: status {}", +IBV_WC_LOC_PROT_ERR)}));
}

TEST_F(LoopbackQueues, MessageLongerThanTheDeviceAllowsFailsAtItsSender) {
  LoopbackOptions options;
  options.capabilities.max_message = 4;
  Host c(network, *IpAddress::parse("192.0.2.3"), options);
  Host d(network, *IpAddress::parse("192.0.2.4"), options);
  establish(c, d);
  ASSERT_EQ(d.receive(1), 0);
  ASSERT_EQ(c.send(1, "four"), 0);
  ASSERT_EQ(c.send(2, "fives"), 0);
  EXPECT_EQ(c.poll(), (Lines{"send 1", fmt::format("2: status {}", +IBV_WC_LOC_LEN_ERR)}));
}

TEST_F(LoopbackQueues, MessageWithoutReceiveWaitsAndIsCountedOnce) {
  ASSERT_EQ(a.send(0, "one"), 0);
  ASSERT_EQ(a.send(1, "two"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(network.rnr_count(), 1U);
  ASSERT_EQ(b.receive(8), 0);
  EXPECT_EQ(b.poll(), Lines{"receive 8 of 3 bytes"});
  EXPECT_EQ(a.poll(), Lines{"send 0"});
  EXPECT_EQ(network.rnr_count(), 2U);
  ASSERT_EQ(b.receive(9), 0);
  EXPECT_EQ(a.poll(), Lines{"send 1"});
  EXPECT_EQ(network.rnr_count(), 2U);
}

TEST_F(LoopbackOwnReceives, MessageWithoutReceiveWaits) {
  ASSERT_EQ(a.send(0, "one"), 0);
  EXPECT_EQ(a.poll(), Lines{});
  EXPECT_EQ(network.rnr_count(), 1U);
  ASSERT_EQ(b.receive(8), 0);
  EXPECT_EQ(a.poll(), Lines{"send 0"});
}

}  // namespace
}  // namespace ipoverbs::support
