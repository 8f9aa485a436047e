// The reliable connection through a matrix of loss, reordering, duplication, path MTU and message
// size, in both directions at once, on the virtual clock. What comes out is compared with the table
// in rc_matrix.txt: a change of the protocol shows as a difference there. With
// IPOVERBS_UPDATE_SNAPSHOTS set in the environment the table is written anew instead.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/verbs/soft/sim_network.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using sim::End;
using sim::Network;

struct Cell {
  double loss = 0;
  double reorder = 0;
  double duplicate = 0;
  std::uint32_t mtu = 1024;
  std::size_t size = 0;
};

// One direction's traffic: `kMessages` messages, as many posted at once as the queues hold.
class Stream {
 public:
  static constexpr std::uint32_t kMessages = 100;
  static constexpr std::uint32_t kDepth = 32;
  static constexpr std::size_t kSlot = 65536;

  Stream(End& from, QueuePair& sender, End& to, QueuePair& receiver, std::size_t size)
      : sender_(sender), receiver_(receiver), size_(size) {
    std::tie(source_, source_key_) = from.memory(kSlot * kDepth);
    std::tie(sink_, sink_key_) = to.memory(kSlot * kDepth);
  }

  void start() {
    for (std::uint32_t i = 0; i < kDepth; ++i) post_receive();
    while (posted_ < kDepth) post_send();
  }
  void on_sent(const ibv_wc& wc) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, sent_++);
    if (posted_ < kMessages) post_send();
  }
  void on_received(const ibv_wc& wc) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, received_);
    EXPECT_EQ(wc.byte_len, size_);
    const std::span slot = sink_.subspan(received_ % kDepth * kSlot, size_);
    for (std::size_t i = 0; i < size_; i += kStep) {
      if (slot[i] != mark(received_, i)) {
        ADD_FAILURE() << "message " << received_ << " differs at " << i;
        break;
      }
    }
    ++received_;
    post_receive();
  }
  [[nodiscard]] bool done() const { return sent_ == kMessages && received_ == kMessages; }

 private:
  static constexpr std::size_t kStep = 61;
  static std::byte mark(std::uint64_t message, std::size_t at) {
    return static_cast<std::byte>(message * 7 + at / kStep);
  }

  void post_send() {
    const std::span slot = source_.subspan(posted_ % kDepth * kSlot, size_);
    for (std::size_t i = 0; i < size_; i += kStep) slot[i] = mark(posted_, i);
    ibv_sge sge{std::bit_cast<std::uint64_t>(slot.data()), static_cast<std::uint32_t>(size_),
                source_key_.value()};
    ibv_send_wr wr{};
    wr.wr_id = posted_++;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(&sender_, &wr, &bad), 0);
  }
  void post_receive() {
    const std::span slot = sink_.subspan(receives_ % kDepth * kSlot, kSlot);
    ibv_sge sge{std::bit_cast<std::uint64_t>(slot.data()), kSlot, sink_key_.value()};
    ibv_recv_wr wr{};
    wr.wr_id = receives_++;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(&receiver_, &wr, &bad), 0);
  }

  QueuePair& sender_;
  QueuePair& receiver_;
  std::size_t size_;
  std::span<std::byte> source_;
  std::span<std::byte> sink_;
  LocalKey source_key_;
  LocalKey sink_key_;
  std::uint64_t posted_ = 0;
  std::uint64_t receives_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

std::string run(const Cell& cell) {
  FaultPlan plan;
  plan.seed = 11;
  FaultRule rule;
  rule.drop = cell.loss;
  rule.reorder = cell.reorder;
  rule.duplicate = cell.duplicate;
  plan.rules.push_back(rule);
  sim::NetworkConfig config;
  // Without faults datagrams travel in runs, as with UDP_SEGMENT and UDP_GRO.
  if (cell.loss + cell.reorder + cell.duplicate > 0) config.faults_a = config.faults_b = plan;
  Network network(config);
  QueuePairSetup setup;
  setup.send_depth = setup.receive_depth = Stream::kDepth;
  setup.number = QpNumber(0x11);
  QueuePair& a = network.a.add_queue_pair(setup);
  setup.number = QpNumber(0x22);
  QueuePair& b = network.b.add_queue_pair(setup);
  Network::Connect how;
  how.mtu = cell.mtu;
  network.connect(a, b, how);
  Stream forth(network.a, a, network.b, b, cell.size);
  Stream back(network.b, b, network.a, a, cell.size);
  forth.start();
  back.start();
  network.run(
      [&](End& end, std::span<const ibv_wc> completions) {
        for (const ibv_wc& wc : completions) {
          const bool at_a = &end == &network.a;
          if (wc.opcode == IBV_WC_SEND) {
            (at_a ? forth : back).on_sent(wc);
          } else {
            (at_a ? back : forth).on_received(wc);
          }
        }
      },
      TimePoint{} + 600s, [&] { return forth.done() && back.done(); });
  EXPECT_TRUE(forth.done() && back.done());
  const RequesterCounters& ca = a.requester().counters();
  const RequesterCounters& cb = b.requester().counters();
  return fmt::format(
      "{:4.1f} {:7.1f} {:9.1f} {:4} {:6} {:8} {:7} {:6} {:6} {:8} {:4} {:10.3f}\n", cell.loss * 100,
      cell.reorder * 100, cell.duplicate * 100, cell.mtu, cell.size, ca.messages + cb.messages,
      ca.packets + cb.packets, ca.resent + cb.resent, ca.probes + cb.probes,
      ca.timeouts + cb.timeouts, a.responder().counters().acks + b.responder().counters().acks,
      std::chrono::duration<double, std::milli>(network.clock.now() - TimePoint{}).count());
}

std::string table() {
  std::string text =
      "Two streams of 100 messages, one each way, over 10 Gb/s with 20 us of latency.\n"
      "Faults in percent of the datagrams of each direction, mtu and size in bytes.\n\n"
      "loss reorder duplicate  mtu   size messages packets resent probes timeouts acks    "
      "time/ms\n";
  for (const double loss : {0.0, 0.01, 0.05, 0.2}) {
    for (const double reorder : {0.0, 0.02}) {
      for (const double duplicate : {0.0, 0.02}) {
        for (const std::uint32_t mtu : {256U, 1024U, 4096U}) {
          for (const std::size_t size : {std::size_t{0}, std::size_t{1000}, std::size_t{65520}}) {
            text += run({loss, reorder, duplicate, mtu, size});
          }
        }
      }
    }
  }
  return text;
}

TEST(RcMatrix, IsWhatItWas) {
  const std::string path = IPOVERBS_RC_MATRIX;
  const std::string now = table();
  if (std::getenv("IPOVERBS_UPDATE_SNAPSHOTS") != nullptr) {
    std::ofstream(path) << now;
    GTEST_SKIP() << "wrote " << path;
  }
  std::stringstream before;
  before << std::ifstream(path).rdbuf();
  ASSERT_FALSE(before.str().empty()) << "no " << path;
  std::istringstream old_lines(before.str());
  std::istringstream new_lines(now);
  for (std::string old_line, new_line; std::getline(new_lines, new_line);) {
    ASSERT_TRUE(std::getline(old_lines, old_line)) << "only now: " << new_line;
    EXPECT_EQ(old_line, new_line);
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
