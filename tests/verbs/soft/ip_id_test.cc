#include "verbs/soft/ip_id.h"

#include <gtest/gtest.h>

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{};

TEST(IpId, TakesWhateverComesFirst) {
  IpIdTracker tracker;
  EXPECT_EQ(tracker.guess(0), 0);
  EXPECT_EQ(tracker.guess(3), 3);
  EXPECT_TRUE(tracker.accept(0xbeef, kStart));
  EXPECT_EQ(tracker.guess(3), 0xbef0);
}

TEST(IpId, SegmentsOfOneSendStayLow) {
  IpIdTracker tracker;
  for (const unsigned id : {0U, 1U, 2U, 0U, 63U, 0U, 127U})
    EXPECT_TRUE(tracker.accept(static_cast<std::uint16_t>(id), kStart));
  EXPECT_EQ(tracker.guess(5), 5);
  EXPECT_FALSE(tracker.accept(128, kStart));
  EXPECT_TRUE(tracker.accept(0, kStart));
  EXPECT_FALSE(tracker.accept(0x8000, kStart + 1h));
}

TEST(IpId, CounterMayLeapByTheTicksOfItsSilence) {
  IpIdTracker tracker;
  EXPECT_TRUE(tracker.accept(0xff00, kStart));
  EXPECT_TRUE(tracker.accept(0x0000, kStart));   // 256 on, over the wrap
  EXPECT_FALSE(tracker.accept(0x0101, kStart));  // 257 on
  EXPECT_TRUE(tracker.accept(0xffc0, kStart));   // 64 back
  EXPECT_FALSE(tracker.accept(0xff7f, kStart));  // 65 back
  EXPECT_TRUE(tracker.accept(0x04a8, kStart + 1s));
}

TEST(IpId, BelievesANewStartWhenItGoesOn) {
  IpIdTracker tracker;
  EXPECT_TRUE(tracker.accept(1000, kStart));
  EXPECT_FALSE(tracker.accept(30000, kStart));
  EXPECT_TRUE(tracker.accept(30001, kStart));
  EXPECT_FALSE(tracker.accept(1001, kStart));
  EXPECT_TRUE(tracker.accept(30002, kStart));
}

TEST(IpId, CounterThatBeganLowGrowsOutOfIt) {
  IpIdTracker tracker;
  EXPECT_TRUE(tracker.accept(126, kStart));
  EXPECT_TRUE(tracker.accept(127, kStart));
  EXPECT_FALSE(tracker.accept(128, kStart));
  EXPECT_TRUE(tracker.accept(129, kStart));
  EXPECT_TRUE(tracker.accept(200, kStart));
  EXPECT_EQ(tracker.guess(0), 201);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
