// The rdma-core device against the kernel's rdma_rxe: data on an established connection.
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/softroce/verbs_fixture.h"

namespace ipoverbs::verbs::test {
namespace {

using namespace std::chrono_literals;

class Data : public TwoSides {};

TEST_F(Data, Crosses64KiBBothWays) {
  for (const bool shared : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(connect(shared));
    if (shared) {
      dialler->post_receives(nullptr, 0, 16);
      listener->post_receives(nullptr, 0, 16);
    }
    for (const auto& [from, to, over] : {std::tuple(dialler.get(), listener.get(), out.get()),
                                         std::tuple(listener.get(), dialler.get(), in.get())}) {
      const auto message = bytes(kMessage, shared ? 5 : 6);
      std::ranges::copy(message, from->buffer(20).begin());
      ASSERT_NO_FATAL_FAILURE(from->post_sends(*over, 20, 1));
      const auto received = completions(*to, 1);
      ASSERT_EQ(received.size(), 1U);
      EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
      EXPECT_EQ(received[0].qp_num, (over == out.get() ? in : out)->queue_pair()->qp_num);
      ASSERT_EQ(received[0].byte_len, kMessage);
      EXPECT_TRUE(std::ranges::equal(to->buffer(received[0].wr_id), message));
      EXPECT_EQ(completions(*from, 1).at(0).opcode, IBV_WC_SEND);
    }
    out.reset();
    in.reset();
  }
}

TEST_F(Data, ChainCompletesByItsLastSend) {
  constexpr std::size_t kChain = 12;
  ASSERT_NO_FATAL_FAILURE(connect(false));
  for (std::size_t i = 0; i < kChain; ++i) {
    const auto message = bytes(kMessage, static_cast<unsigned>(i));
    std::ranges::copy(message, dialler->buffer(16 + i).begin());
  }
  ASSERT_NO_FATAL_FAILURE(dialler->post_sends(*out, 16, kChain));
  const auto received = completions(*listener, kChain);
  ASSERT_EQ(received.size(), kChain);
  for (std::size_t i = 0; i < kChain; ++i) {
    EXPECT_TRUE(std::ranges::equal(listener->buffer(received[i].wr_id), dialler->buffer(16 + i)));
  }
  const auto sent = completions(*dialler, 1);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].wr_id, 16 + kChain - 1);
}

TEST_F(Data, GathersSeveralPieces) {
  ASSERT_NO_FATAL_FAILURE(connect(false));
  std::ranges::copy(bytes(1000, 1), dialler->buffer(20).begin());
  std::ranges::copy(bytes(77, 2), dialler->buffer(21).begin());
  std::array<ibv_sge, 2> pieces{dialler->sge(20, 1000), dialler->sge(21, 77)};
  ibv_send_wr send{};
  send.sg_list = pieces.data();
  send.num_sge = 2;
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(out->queue_pair(), &send, &bad), 0);
  const auto received = completions(*listener, 1);
  ASSERT_EQ(received.size(), 1U);
  ASSERT_EQ(received[0].byte_len, 1077U);
  EXPECT_TRUE(std::ranges::equal(listener->buffer(received[0].wr_id).subspan(1000, 77),
                                 dialler->buffer(21).first(77)));
}

// The far end may send as soon as it has our reply, before our own event says so.
TEST_F(Data, MayComeBeforeTheEvent) {
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out->create_queue_pair(dialler->queues(true));
  out->connect({});
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  in = std::move(listener->incoming.front());
  in->create_queue_pair(listener->queues(true));
  listener->post_receives(nullptr, 0, 1);
  in->accept({});
  EXPECT_EQ(in->attributes().min_rnr_timer, ConnectionTimers{}.min_rnr_timer);
  // The dialler's events alone.
  while (readable(dialler->device->event_fd(), 5s) && !dialler->saw(EventKind::Established)) {
    dialler->device->process_events(*dialler);
  }
  ASSERT_TRUE(dialler->saw(EventKind::Established));
  ASSERT_NO_FATAL_FAILURE(dialler->post_sends(*out, 20, 1));
  EXPECT_EQ(completions(*listener, 1).size(), 1U);
  EXPECT_FALSE(listener->saw(EventKind::Established));
  EXPECT_TRUE(until([&] { return listener->saw(EventKind::Established); }));
}

TEST_F(Data, WakesItsWorker) {
  ASSERT_NO_FATAL_FAILURE(connect(false));
  // More wake-ups than are acknowledged at once, and not a multiple: destruction sees to the rest.
  for (int i = 0; i < 70; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(listener->completions->raw(), 0), 0);
    EXPECT_FALSE(readable(listener->completions->fd(), 0ms));
    ASSERT_NO_FATAL_FAILURE(dialler->post_sends(*out, 20, 1));
    ASSERT_TRUE(readable(listener->completions->fd(), 5s));
    listener->completions->consume_events();
    EXPECT_FALSE(readable(listener->completions->fd(), 0ms));
    const auto received = completions(*listener, 1);
    ASSERT_EQ(received.size(), 1U);
    listener->post_receives(in.get(), received[0].wr_id, 1);
    ASSERT_EQ(completions(*dialler, 1).size(), 1U);
  }
}

// librdmacm leaves min_rnr_timer at 0, which is 655 ms for each receive that comes late.
TEST_F(Data, LateReceiveCostsMilliseconds) {
  for (const auto& [from, to] :
       {std::pair(dialler.get(), listener.get()), std::pair(listener.get(), dialler.get())}) {
    ASSERT_NO_FATAL_FAILURE(connect(true));
    const bool forth = from == dialler.get();
    Connection& over = forth ? *out : *in;
    ASSERT_NO_FATAL_FAILURE(from->post_sends(over, 20, 1));
    std::this_thread::sleep_for(20ms);
    const TimePoint posted = monotonic_now();
    to->post_receives(nullptr, 0, 1);
    ASSERT_EQ(completions(*to, 1).size(), 1U);
    EXPECT_LT(monotonic_now() - posted, 500ms);
    ASSERT_EQ(completions(*from, 1).size(), 1U);
    out.reset();
    in.reset();
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return ipoverbs::verbs::test::run_child(argv[1], argc > 2 ? argv[2] : "");
  ::testing::AddGlobalTestEnvironment(new ipoverbs::verbs::test::Link);
  return RUN_ALL_TESTS();
}
