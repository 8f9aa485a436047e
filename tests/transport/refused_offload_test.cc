// What a node does when its kernel comes to refuse what it took at the start.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csum/packet.h"
#include "tests/support/refuse_writes.h"
#include "tests/transport/node_rig.h"
#include "tests/tun/records.h"
#include "transport/hello.h"
#include "transport/refusals.h"

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::Bytes;
using test::kAllCapabilities;

constexpr std::uint32_t kTso4 = static_cast<std::uint32_t>(Capability::Tso4);

TEST(Refusals, TheEighthWithdraws) {
  Refusals refusals;
  for (std::uint32_t i = 1; i < Refusals::kLatch; ++i) {
    EXPECT_FALSE(refusals.on_refused(Capability::Uso));
  }
  EXPECT_FALSE(refusals.is_withdrawn(Capability::Uso));
  EXPECT_TRUE(refusals.on_refused(Capability::Uso));
  EXPECT_TRUE(refusals.is_withdrawn(Capability::Uso));
  EXPECT_FALSE(refusals.on_refused(Capability::Uso));  // once
}

TEST(Refusals, OneKindSaysNothingOfAnother) {
  Refusals refusals;
  for (std::uint32_t i = 1; i < Refusals::kLatch; ++i) {
    EXPECT_FALSE(refusals.on_refused(Capability::Tso4));
    EXPECT_FALSE(refusals.on_refused(Capability::Tso6));
  }
  EXPECT_EQ(refusals.withdrawn(), 0U);
  EXPECT_TRUE(refusals.on_refused(Capability::Tso6));
  EXPECT_EQ(refusals.withdrawn(), static_cast<std::uint32_t>(Capability::Tso6));
}

class RefusedOffloadTest : public test::NodeTest {
 protected:
  // Runs `body` with a kernel that refuses B's writes of more than 2,000 bytes: super-packets of
  // 2,540.
  template <class Body>
  void with_refusing_kernel(Body body) {
    std::thread([&] {
      support::refuse_long_writes(b.tun().queue(), 2000);
      start_both();
      ASSERT_TRUE(connect());
      body();
      a.kill();
      b.kill();
    }).join();
  }
  // The packets that come out at B after A's host has sent one super-packet that stands for three.
  std::vector<Bytes> cross_super_packet() {
    const tun::Record record = tun::tcp4_super_packet();
    EXPECT_TRUE(a.tun().send(record.packet, record.header));
    std::vector<Bytes> got;
    run_until(
        [&] {
          while (auto packet = b.tun().receive()) got.push_back(*packet);
          return got.size() >= 3;
        },
        0ms, 5000);
    return got;
  }
};

TEST_F(RefusedOffloadTest, ASuperPacketArrivesInSegments) {
  with_refusing_kernel([&] {
    const std::vector<Bytes> got = cross_super_packet();
    ASSERT_EQ(got.size(), 3U);
    for (const Bytes& segment : got) EXPECT_EQ(csum::verify(segment), csum::Verdict::valid);
    EXPECT_EQ(got[0].size() + got[1].size() + got[2].size(), 2500U + 3 * 40);
    EXPECT_TRUE(counts(b, Counter::RxOffloadRefused, 1));
    EXPECT_TRUE(counts(b, Counter::RxOffloadSoftware, 1));
    EXPECT_TRUE(counts(b, Counter::TunTxPackets, 1));
    EXPECT_EQ(b.node().status(now).withdrawn, 0U);
    EXPECT_EQ(a.node().peer_capabilities(), kAllCapabilities);
  });
}

TEST_F(RefusedOffloadTest, AfterSeveralItIsWithdrawnAndThePeerKnows) {
  with_refusing_kernel([&] {
    for (std::uint32_t i = 0; i < Refusals::kLatch; ++i) {
      ASSERT_EQ(cross_super_packet().size(), 3U) << i;
    }
    EXPECT_TRUE(run_until([&] { return b.node().status(now).withdrawn == kTso4; }));
    EXPECT_TRUE(run_until(
        [&] { return a.node().peer_capabilities() == (kAllCapabilities & ~kTso4); }, 0ms));
    // One that was read before A's host was told is delivered all the same, and not tried again.
    EXPECT_EQ(cross_super_packet().size(), 3U);
    EXPECT_TRUE(counts(b, Counter::RxOffloadRefused, Refusals::kLatch));
    EXPECT_TRUE(counts(b, Counter::RxOffloadSoftware, Refusals::kLatch + 1));
    EXPECT_EQ(a.counter(Counter::TxDropOffload), 0U);
  });
}

TEST_F(RefusedOffloadTest, WithdrawnForSessionsThatComeLater) {
  with_refusing_kernel([&] {
    for (std::uint32_t i = 0; i < Refusals::kLatch; ++i) {
      ASSERT_EQ(cross_super_packet().size(), 3U) << i;
    }
    ASSERT_TRUE(run_until([&] { return b.node().status(now).withdrawn == kTso4; }));
    a.kill();
    a.start(3, now);
    ASSERT_TRUE(connect());
    EXPECT_EQ(a.node().peer_capabilities(), kAllCapabilities & ~kTso4);
  });
}

TEST_F(RefusedOffloadTest, APacketWithNothingLeftToDoIsDropped) {
  with_refusing_kernel([&] {
    a.tun().send(support::ip_packet("10.77.0.1", "10.77.0.2", Bytes(2500)));
    EXPECT_TRUE(counts(b, Counter::RxDropTunRefused, 1));
    EXPECT_TRUE(counts(b, Counter::RxOffloadSoftware, 0));
  });
}

}  // namespace
}  // namespace ipoverbs::transport
