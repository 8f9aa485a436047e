// Workers in threads of their own: run it with ThreadSanitizer.
#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/loopback_device.h"
#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

// One worker: answers each message with the next, sleeping on its completion channel between.
class Player {
 public:
  Player(Host& host, std::uint64_t rounds) : host_(host), rounds_(rounds) {}

  void run() {
    while (received_ < rounds_ || sent_ < rounds_) {
      if (turn() > 0) continue;
      if (ibv_req_notify_cq(host_.completions->raw(), 0) != 0) return;
      // Once more after arming, or a completion that came between would be slept through.
      if (turn() > 0) continue;
      pollfd waiting{.fd = host_.completions->fd(), .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 30'000) != 1) return;
      host_.completions->consume_events();
    }
  }
  void serve() {
    ++started_;
    if (host_.send(0, "ball") != 0) ++errors_;
  }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t errors() const { return errors_; }

 private:
  int turn() {
    std::array<ibv_wc, 4> wc{};
    const int n = ibv_poll_cq(host_.completions->raw(), 4, wc.data());
    for (const ibv_wc& one : std::span(wc).first(static_cast<std::size_t>(n))) {
      if (one.status != IBV_WC_SUCCESS) ++errors_;
      if (one.opcode == IBV_WC_SEND) {
        ++sent_;
        continue;
      }
      ++received_;
      if (host_.read(one.wr_id, 4) != "ball") ++errors_;
      if (host_.receive(one.wr_id) != 0) ++errors_;
      if (started_ < rounds_) serve();
    }
    return n;
  }

  Host& host_;
  std::uint64_t rounds_;
  std::uint64_t started_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t errors_ = 0;
};

TEST(LoopbackThreads, TwoWorkersPlayPingPongWithoutLosingAWakeUp) {
  constexpr std::uint64_t kRounds = 2000;
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  for (std::size_t i = 1; i < 5; ++i) {
    ASSERT_EQ(a.receive(i), 0);
    ASSERT_EQ(b.receive(i), 0);
  }
  Player first(a, kRounds);
  Player second(b, kRounds);
  std::thread worker([&] { second.run(); });
  first.serve();
  first.run();
  worker.join();
  EXPECT_EQ(first.received(), kRounds);
  EXPECT_EQ(second.received(), kRounds);
  EXPECT_EQ(first.sent(), kRounds);
  EXPECT_EQ(second.sent(), kRounds);
  EXPECT_EQ(first.errors() + second.errors(), 0U);
  EXPECT_EQ(network.rnr_count(), 0U);
}

TEST(LoopbackThreads, ConnectionIsDestroyedWhileItsCompletionsArePolled) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  std::atomic<bool> stop = false;
  std::uint64_t polled = 0;
  std::thread poller([&] {
    while (!stop) polled += b.poll().size();
    polled += b.poll().size();
  });
  for (std::size_t round = 0; round < 50; ++round) {
    ASSERT_EQ(b.receive(round), 0);
    ASSERT_EQ(a.send(0, "x"), 0);
    b.connection.reset();
    EXPECT_EQ(a.process(), Lines{"disconnected"});
    a.poll();
    a.connection.reset();
    reconnect(a, b);
  }
  stop = true;
  poller.join();
  EXPECT_EQ(polled, 50U);
}

}  // namespace
}  // namespace ipoverbs::support
