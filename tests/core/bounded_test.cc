#include "core/bounded.h"

#include <gtest/gtest.h>

namespace ipoverbs {
namespace {

TEST(Bounded, KeepsItsElementsWhereTheyAre) {
  Bounded<int> b(3);
  b.append(1);
  const int* first = b.elements().data();
  b.append(2);
  b.append(3);
  EXPECT_EQ(b.elements().data(), first);
  EXPECT_EQ(b.take_last(), 3);
  EXPECT_EQ(b.size(), 2U);
  b.clear();
  EXPECT_TRUE(b.empty());
  EXPECT_GE(b.capacity(), 3U);
}

TEST(BoundedDeathTest, DoesNotGrowByItself) {
  Bounded<int> b(1);
  while (b.size() < b.capacity()) b.append(0);
  EXPECT_DEATH(b.append(0), "");
}

}  // namespace
}  // namespace ipoverbs
