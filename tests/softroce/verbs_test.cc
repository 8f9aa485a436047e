// The rdma-core device against the kernel's rdma_rxe: connecting and what can go wrong with it, and
// data both ways.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/softroce/verbs_fixture.h"

namespace ipoverbs::verbs::test {
namespace {

using namespace std::chrono_literals;

class Connecting : public TwoSides {};
class Data : public TwoSides {};

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
  const auto& request = listener->last(EventKind::ConnectRequest);
  EXPECT_EQ(request.private_data, hello);
  EXPECT_EQ(in->remote().address, dialler->address.address);
  EXPECT_EQ(out->remote(), (Endpoint{listener->address.address, kPort, 0}));
  const auto& established = dialler->last(EventKind::Established);
  EXPECT_TRUE(starts_with(established.private_data, answer));
  ASSERT_EQ(established.private_data.size(), kAcceptPrivateData);
  EXPECT_TRUE(is_zero(std::span(established.private_data).last(6)));
}

TEST_F(Connecting, RejectCarriesPrivateData) {
  const auto why = bytes(kRejectPrivateData, 3);
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::RouteResolved); }));
  out->create_queue_pair(dialler->queues(true));
  out->connect({});
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  listener->incoming.front()->reject(why);
  ASSERT_TRUE(until([&] { return dialler->saw(EventKind::Rejected); }));
  EXPECT_EQ(dialler->last(EventKind::Rejected).private_data, why);
  EXPECT_EQ(dialler->last(EventKind::Rejected).connection, out.get());
}

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
      ibv_sge piece = from->sge(20);
      ibv_send_wr send{};
      send.sg_list = &piece;
      send.num_sge = 1;
      send.opcode = IBV_WR_SEND;
      send.send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_send(over->queue_pair(), &send, &bad), 0);
      const auto received = completions(*to, 1);
      ASSERT_EQ(received.size(), 1U);
      EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
      ASSERT_EQ(received[0].byte_len, kMessage);
      EXPECT_TRUE(std::ranges::equal(to->buffer(received[0].wr_id), message));
      EXPECT_EQ(completions(*from, 1).at(0).opcode, IBV_WC_SEND);
    }
    out.reset();
    in.reset();
  }
}

class Removal : public TwoSides {
 protected:
  // Deletes the device under `side` while it is in use; the command ends when everything is let go.
  void take_away(std::unique_ptr<Side>& side, const std::string& name) {
    auto deleted = std::async(std::launch::async,
                              [&] { return std::system(("rdma link delete " + name).c_str()); });
    EXPECT_TRUE(until([&] { return side->saw(EventKind::DeviceRemoved); }));
    EXPECT_EQ(side->count(EventKind::DeviceRemoved), 1);
    (side == dialler ? out : in).reset();
    side.reset();
    if (deleted.wait_for(5s) != std::future_status::ready) {
      std::fprintf(stderr, "rdma link delete %s blocks\n", name.c_str());
      std::system("ls -l /proc/self/fd; ls -l /proc/$PPID/fd");
      std::_Exit(1);
    }
    EXPECT_EQ(deleted.get(), 0);
  }
};

TEST_F(Removal, LetsTheKernelHaveTheDevice) {
  ASSERT_NO_FATAL_FAILURE(connect());
  take_away(dialler, "rxe0");
  EXPECT_TRUE(until([&] { return listener->saw(EventKind::Disconnected); }));
  // The last device of the machine.
  take_away(listener, "rxe1");
  EXPECT_THROW(Side("10.77.0.1"), UsageError);
  run("rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1");
  SetUp();
  ASSERT_NO_FATAL_FAILURE(connect());
}

}  // namespace
}  // namespace ipoverbs::verbs::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new ipoverbs::verbs::test::Link);
  return RUN_ALL_TESTS();
}
