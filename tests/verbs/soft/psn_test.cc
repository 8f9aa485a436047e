#include "verbs/soft/psn.h"

#include <type_traits>

#include <gtest/gtest.h>

namespace ipoverbs::verbs::soft {
namespace {

static_assert(!std::is_convertible_v<std::uint32_t, Psn>);
static_assert(!std::is_convertible_v<Psn, std::uint32_t>);

TEST(Psn, KeepsTwentyFourBits) {
  EXPECT_EQ(Psn(0x12345678).value(), 0x345678U);
  EXPECT_EQ(Psn(0xffffff).next(), Psn(0));
  EXPECT_EQ(Psn(0).minus(1), Psn(0xffffff));
  EXPECT_EQ(Psn(5).plus(0x1000000), Psn(5));
}

TEST(Psn, DistanceGoesTheShorterWay) {
  struct Row {
    std::uint32_t from, to;
    std::int32_t distance;
  };
  for (const Row& row :
       {Row{0, 0, 0}, Row{0, 1, 1}, Row{1, 0, -1}, Row{0xffffff, 0, 1}, Row{0, 0xffffff, -1},
        Row{0, 0x7fffff, 0x7fffff}, Row{0, 0x800000, -0x800000}, Row{0, 0x800001, -0x7fffff},
        Row{0xfffff0, 0x10, 0x20}, Row{0x10, 0xfffff0, -0x20}, Row{0x800000, 0, -0x800000}}) {
    EXPECT_EQ(distance(Psn(row.from), Psn(row.to)), row.distance) << row.from << ' ' << row.to;
    EXPECT_EQ(before(Psn(row.from), Psn(row.to)), row.distance > 0);
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
