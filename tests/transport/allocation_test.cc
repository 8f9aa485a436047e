// Workers allocate nothing for a packet: two nodes on the software device, whose threads are
// watched by a counting operator new.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fake_tun.h"
#include "tests/support/packets.h"
#include "tests/tun/records.h"
#include "tests/verbs/soft/own_network.h"
#include "transport/node.h"
#include "verbs/soft/device.h"

namespace {

// Of threads that the test did not say to leave out.
std::atomic<std::uint64_t> allocations{0};
thread_local bool counts = true;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counts) allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, std::max(whole, alignment));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inline: GCC would see free() end what operator new began, and call that a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::address;
using support::Bytes;
using support::FakeTun;

const auto* const kNetwork = testing::AddGlobalTestEnvironment(new verbs::soft::test::OwnNetwork);

// Underlay 192.0.2.<n>, overlay 10.77.0.<n>; the other end is the only peer.
class End {
 public:
  End(unsigned n, TimePoint now) {
    Options options;
    options.own = {*Prefix::parse(fmt::format("10.77.0.{}", n))};
    options.capabilities = 0x1f;
    options.receive_buffers = 32;
    options.slabs = 16;
    PeerOptions peer;
    peer.underlay.endpoint = {address(fmt::format("192.0.2.{}", 3 - n)), options.port, 0};
    peer.prefixes = {*Prefix::parse(fmt::format("10.77.0.{}", 3 - n))};
    options.peers = {peer};
    const auto open = [n]() -> std::unique_ptr<verbs::Device> {
      verbs::DeviceRequest request;
      request.underlay = {address(fmt::format("192.0.2.{}", n)), 0, 0};
      return std::make_unique<verbs::soft::SoftDevice>(request, IpMtu(9000),
                                                       verbs::soft::SoftOptions{n, {}});
    };
    const std::array queues{tun.queue()};
    node.emplace(options, queues, open, n, *log_, now);
  }

  FakeTun tun;
  std::optional<Node> node;

 private:
  std::shared_ptr<Logger> log_ = make_null_logger();
};

class AllocationTest : public testing::Test {
 protected:
  void SetUp() override {
    counts = false;
    const std::string& why = verbs::soft::test::why_no_network();
    if (!why.empty()) GTEST_SKIP() << why;
    a_.emplace(1, now_);
    b_.emplace(2, now_);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    counts = true;
  }

  bool connect() {
    return run_until([&] {
      for (const End* end : {&*a_, &*b_}) {
        const Status status = end->node->status(now_);
        for (const SessionStatus& s : status.peers.at(0).sessions) {
          if (s.state != "established" || s.send_credits == 0) return false;
        }
      }
      return true;
    });
  }
  bool run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 100000; ++i) {
      now_ = monotonic_now();
      a_->node->process(now_);
      b_->node->process(now_);
      if (done()) return true;
      support::wait_for_any({a_->node->event_fd(), b_->node->event_fd()});
    }
    return false;
  }
  // Packets of many sizes each way, super-packets and partial checksums among them, no more at a
  // time than the buffers of the sockets hold.
  bool exchange(std::size_t rounds) {
    std::size_t round = 0;
    Way to_b;
    Way to_a;
    return run_until([&] {
      for (; round < rounds && to_b.on_the_way() < 60 && to_a.on_the_way() < 60; ++round) {
        to_b.sent += a_->tun.send(packet(1, 2, round));
        to_a.sent += b_->tun.send(packet(2, 1, round));
        if (round % 3 == 0) to_b.sent += a_->tun.send(super_.packet, super_.header);
        if (round % 5 == 0) to_b.sent += a_->tun.send(partial_.packet, partial_.header);
      }
      while (a_->tun.receive_record()) ++to_a.arrived;
      while (b_->tun.receive_record()) ++to_b.arrived;
      return round == rounds && to_a.on_the_way() == 0 && to_b.on_the_way() == 0;
    });
  }

  std::optional<End> a_;
  std::optional<End> b_;

 private:
  struct Way {
    [[nodiscard]] std::size_t on_the_way() const { return sent - arrived; }
    std::size_t sent = 0;
    std::size_t arrived = 0;
  };
  static Bytes packet(unsigned from, unsigned to, std::size_t n) {
    return support::ip_packet(fmt::format("10.77.0.{}", from), fmt::format("10.77.0.{}", to),
                              Bytes(n * 977 % 30000));
  }

  const tun::Record super_ = tun::tcp4_super_packet();
  const tun::Record partial_ = tun::udp4_partial();
  TimePoint now_ = monotonic_now();
};

TEST_F(AllocationTest, TheCounterCounts) {
  const std::uint64_t before = allocations;
  std::thread([] { std::vector<int> v(1000); }).join();
  EXPECT_GT(allocations, before);
}

TEST_F(AllocationTest, NoneForAPacket) {
  ASSERT_TRUE(connect());
  ASSERT_TRUE(exchange(2000));  // whatever grows to the size that it needs
  const std::uint64_t before = allocations;
  ASSERT_TRUE(exchange(5000));
  EXPECT_EQ(allocations - before, 0U);
}

}  // namespace
}  // namespace ipoverbs::transport
