#include "transport/credits.h"

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ipoverbs::transport {
namespace {

// A queue that has room for whoever may come.
constexpr ReceivePlan ample(std::uint32_t shared) { return {100000, shared}; }

TEST(ReceivePlan, HasPlacesForAllPeersAndSomeMore) {
  const ReceivePlan plan = plan_receives(1000, 128, 65536);
  EXPECT_EQ(plan.places, 1126 * kSessionReceives + 128);
  EXPECT_EQ(plan.shared, 128U);
}

TEST(ReceivePlan, WhatIsSharedGivesWayToWhatIsPromised) {
  EXPECT_EQ(plan_receives(8, 128, 150).places, 150U);
  EXPECT_EQ(plan_receives(8, 128, 150).shared, 150 - 10 * kSessionReceives);
  EXPECT_EQ(plan_receives(8, 128, 100).places, 100U);
  EXPECT_EQ(plan_receives(8, 128, 100).shared, 0U);
  EXPECT_EQ(plan_receives(1, 65536, 16384).shared, 16384 - 2 * kSessionReceives);
}

TEST(Grantor, BeginsWithWhatItsHelloGranted) {
  CreditPool pool(ample(100));
  ASSERT_TRUE(pool.session_joins());
  const Grantor grantor(pool);
  EXPECT_EQ(grantor.outstanding(), kInitialCredits);
  EXPECT_FALSE(grantor.due());
}

TEST(Grantor, GrantsAgainWhenHalfIsUsedAndDoublesItsWindow) {
  CreditPool pool(ample(100));
  ASSERT_TRUE(pool.session_joins());
  Grantor grantor(pool);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(grantor.on_message());
  EXPECT_FALSE(grantor.due());
  EXPECT_TRUE(grantor.on_message());
  EXPECT_TRUE(grantor.due());
  EXPECT_EQ(grantor.take(), 12);  // 4 outstanding, window 16
  EXPECT_EQ(grantor.window(), 16U);
  EXPECT_EQ(grantor.take(), 0);
}

TEST(Grantor, TheWindowStopsAtTheShare) {
  CreditPool pool(ample(20));
  ASSERT_TRUE(pool.session_joins());
  Grantor grantor(pool);
  for (int round = 0; round < 10; ++round) {
    while (grantor.outstanding() > 0) ASSERT_TRUE(grantor.on_message());
    EXPECT_GT(grantor.take(), 0);
  }
  EXPECT_EQ(grantor.outstanding(), kInitialCredits + 20);
}

TEST(Grantor, AMessageWithoutCreditBreaksTheRules) {
  CreditPool pool(ample(0));
  ASSERT_TRUE(pool.session_joins());
  Grantor grantor(pool);
  for (std::uint32_t i = 0; i < kInitialCredits; ++i) EXPECT_TRUE(grantor.on_message());
  EXPECT_FALSE(grantor.on_message());
}

TEST(ControlAllowance, EndsABurstThatNothingCaused) {
  ControlAllowance allowance;
  for (std::uint32_t i = 0; i < kControlBurst; ++i) ASSERT_TRUE(allowance.on_control(0));
  EXPECT_FALSE(allowance.on_control(0));
}

TEST(ControlAllowance, BeginsAnewWithEachTick) {
  ControlAllowance allowance;
  for (int tick = 0; tick < 3; ++tick) {
    for (std::uint32_t i = 0; i < kControlBurst; ++i) ASSERT_TRUE(allowance.on_control(0));
    allowance.on_tick(0);
  }
}

TEST(ControlAllowance, GrowsByWhatWasSentInThisTickAndTheOneBefore) {
  ControlAllowance allowance;
  allowance.on_tick(0);
  for (std::uint32_t i = 0; i < kControlBurst + 1000; ++i) ASSERT_TRUE(allowance.on_control(1000));
  allowance.on_tick(1000);
  for (std::uint32_t i = 0; i < kControlBurst + 1000; ++i) ASSERT_TRUE(allowance.on_control(1000));
  allowance.on_tick(1000);
  for (std::uint32_t i = 0; i < kControlBurst; ++i) ASSERT_TRUE(allowance.on_control(1000));
  EXPECT_FALSE(allowance.on_control(1000));
}

// The smallest window, used up again and again within one tick: a grant for every four messages.
TEST(ControlAllowance, IsNeverUsedUpByGrants) {
  CreditPool pool(ample(0));
  ASSERT_TRUE(pool.session_joins());
  Grantor peer(pool);
  ControlAllowance allowance;
  for (std::uint64_t sent = 1; sent <= 100000; ++sent) {
    ASSERT_TRUE(peer.on_message());
    if (!peer.due()) continue;
    ASSERT_GT(peer.take(), 0);
    ASSERT_TRUE(allowance.on_control(sent)) << sent;
  }
}

TEST(CreditPool, AnIdleSessionLeavesTheNewOneItsInitialCredits) {
  CreditPool pool(ample(8));
  ASSERT_TRUE(pool.session_joins());
  Grantor old(pool);
  while (old.outstanding() > 0) ASSERT_TRUE(old.on_message());
  EXPECT_GT(old.take(), 0);
  while (old.outstanding() > 0) ASSERT_TRUE(old.on_message());
  EXPECT_GT(old.take(), 0);
  EXPECT_EQ(pool.available(), 0U);
  ASSERT_TRUE(pool.session_joins());
  Grantor fresh(pool);
  while (fresh.outstanding() > 0) ASSERT_TRUE(fresh.on_message());
  EXPECT_TRUE(fresh.due());
  EXPECT_EQ(fresh.take(), kInitialCredits);
}

// Each such grant would be a Control message, and kControlReceives of them have a receive.
TEST(CreditPool, WhatComesBackBitByBitIsNotGrantedBitByBit) {
  CreditPool pool(ample(64));
  ASSERT_TRUE(pool.session_joins());
  Grantor busy(pool);
  while (pool.available() > 0) {
    while (busy.outstanding() > kInitialCredits / 2) ASSERT_TRUE(busy.on_message());
    ASSERT_GT(busy.take(), 0);
  }
  // A second session finds none free, but its window grows to its share.
  ASSERT_TRUE(pool.session_joins());
  Grantor late(pool);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(late.on_message());
  for (int i = 0; i < 3; ++i) static_cast<void>(late.take());
  const std::uint32_t half = late.window() / 2;
  ASSERT_EQ(half, 20U);
  ASSERT_LE(late.outstanding(), half);
  int grants = 0;
  while (late.outstanding() <= half) {
    ASSERT_TRUE(busy.on_message());
    if (!late.due()) continue;
    ++grants;
    EXPECT_GE(late.take(), half);
  }
  EXPECT_EQ(grants, 1);
}

TEST(CreditPool, GetsBackWhatALeavingSessionHad) {
  CreditPool pool(ample(50));
  ASSERT_TRUE(pool.session_joins());
  Grantor grantor(pool);
  for (int round = 0; round < 6; ++round) {
    while (grantor.outstanding() > 0) ASSERT_TRUE(grantor.on_message());
    EXPECT_GT(grantor.take(), 0);
  }
  EXPECT_EQ(pool.available(), 0U);
  pool.session_left(grantor.outstanding());
  EXPECT_EQ(pool.available(), 50U);
}

TEST(CreditPool, RefusesASessionForWhichThereIsNoPlace) {
  CreditPool pool({2 * kSessionReceives + 5, 5});
  ASSERT_TRUE(pool.session_joins());
  ASSERT_TRUE(pool.session_joins());
  EXPECT_EQ(pool.receives(), 2 * kSessionReceives + 5);
  EXPECT_FALSE(pool.session_joins());
  pool.session_left(kInitialCredits);
  EXPECT_TRUE(pool.session_joins());
}

TEST(CreditPool, WhatIsLentKeepsItsPlace) {
  CreditPool pool({2 * kSessionReceives + 5, kSessionReceives});
  ASSERT_TRUE(pool.session_joins());
  Grantor grantor(pool);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(grantor.on_message());
  EXPECT_EQ(grantor.take(), 12);  // window 16: 8 of them from what is shared
  EXPECT_FALSE(pool.session_joins());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(grantor.on_message());
  EXPECT_TRUE(pool.session_joins());
  EXPECT_EQ(pool.available(), 0U);
}

// Sessions come, go, and use their credits at random: never is more granted than there are
// receives, nor more posted than there are places.
TEST(CreditPool, NeverGrantsMoreThanItHas) {
  constexpr std::uint32_t kShared = 37;
  constexpr std::uint32_t kPlaces = 10 * kSessionReceives + 3;
  std::mt19937 random(2);
  CreditPool pool({kPlaces, kShared});
  std::deque<Grantor> sessions;
  for (int step = 0; step < 200000; ++step) {
    switch (random() % 50) {
      case 0:
        if (pool.session_joins()) sessions.emplace_back(pool);
        break;
      case 1:
        if (!sessions.empty()) {
          pool.session_left(sessions.front().outstanding());
          sessions.pop_front();
        }
        break;
      default:
        if (sessions.empty()) break;
        Grantor& g = sessions[random() % sessions.size()];
        if (random() % 2 == 0 && g.outstanding() > 0) {
          ASSERT_TRUE(g.on_message());
        }
        if (g.due()) {
          ASSERT_GT(g.take(), 0);
        }
    }
    std::uint32_t granted = 0;
    for (const Grantor& g : sessions) granted += g.outstanding();
    ASSERT_LE(granted + kControlReceives * sessions.size(), pool.receives());
    ASSERT_LE(pool.receives(),
              std::min<std::size_t>(kPlaces, kShared + kSessionReceives * sessions.size()));
    ASSERT_LE(pool.available(), kShared);
  }
}

}  // namespace
}  // namespace ipoverbs::transport
