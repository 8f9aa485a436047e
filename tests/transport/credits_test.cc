#include "transport/credits.h"

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ipoverbs::transport {
namespace {

TEST(Grantor, BeginsWithWhatItsHelloGranted) {
  CreditPool pool(100);
  pool.session_joined();
  const Grantor grantor(pool);
  EXPECT_EQ(grantor.outstanding(), kInitialCredits);
  EXPECT_FALSE(grantor.due());
}

TEST(Grantor, GrantsAgainWhenHalfIsUsedAndDoublesItsWindow) {
  CreditPool pool(100);
  pool.session_joined();
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
  CreditPool pool(20);
  pool.session_joined();
  Grantor grantor(pool);
  for (int round = 0; round < 10; ++round) {
    while (grantor.outstanding() > 0) ASSERT_TRUE(grantor.on_message());
    EXPECT_GT(grantor.take(), 0);
  }
  EXPECT_EQ(grantor.outstanding(), kInitialCredits + 20);
}

TEST(Grantor, AMessageWithoutCreditBreaksTheRules) {
  CreditPool pool(0);
  pool.session_joined();
  Grantor grantor(pool);
  for (std::uint32_t i = 0; i < kInitialCredits; ++i) EXPECT_TRUE(grantor.on_message());
  EXPECT_FALSE(grantor.on_message());
}

TEST(CreditPool, AnIdleSessionLeavesTheNewOneItsInitialCredits) {
  CreditPool pool(8);
  pool.session_joined();
  Grantor old(pool);
  while (old.outstanding() > 0) ASSERT_TRUE(old.on_message());
  EXPECT_GT(old.take(), 0);
  while (old.outstanding() > 0) ASSERT_TRUE(old.on_message());
  EXPECT_GT(old.take(), 0);
  EXPECT_EQ(pool.available(), 0U);
  pool.session_joined();
  Grantor fresh(pool);
  while (fresh.outstanding() > 0) ASSERT_TRUE(fresh.on_message());
  EXPECT_TRUE(fresh.due());
  EXPECT_EQ(fresh.take(), kInitialCredits);
}

TEST(CreditPool, GetsBackWhatALeavingSessionHad) {
  CreditPool pool(50);
  pool.session_joined();
  Grantor grantor(pool);
  for (int round = 0; round < 6; ++round) {
    while (grantor.outstanding() > 0) ASSERT_TRUE(grantor.on_message());
    EXPECT_GT(grantor.take(), 0);
  }
  EXPECT_EQ(pool.available(), 0U);
  pool.session_left(grantor.outstanding());
  EXPECT_EQ(pool.available(), 50U);
}

// Sessions come, go, and use their credits at random: never is more granted than there are
// receives.
TEST(CreditPool, NeverGrantsMoreThanItHas) {
  constexpr std::uint32_t kShared = 37;
  std::mt19937 random(2);
  CreditPool pool(kShared);
  std::deque<Grantor> sessions;
  for (int step = 0; step < 200000; ++step) {
    switch (random() % 50) {
      case 0:
        if (sessions.size() < 12) {
          pool.session_joined();
          sessions.emplace_back(pool);
        }
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
    ASSERT_LE(granted, kShared + kInitialCredits * sessions.size());
    ASSERT_LE(pool.available(), kShared);
  }
}

}  // namespace
}  // namespace ipoverbs::transport
