#include "transport/histogram.h"

#include <gtest/gtest.h>

namespace ipoverbs::transport {
namespace {

SizeHistogram::Counts counts_of(std::uint64_t size) {
  SizeHistogram histogram;
  histogram.add(size);
  SizeHistogram::Counts counts{};
  histogram.add_to(counts);
  return counts;
}

SizeHistogram::Counts one_in(std::size_t bucket) {
  SizeHistogram::Counts counts{};
  counts.at(bucket) = 1;
  return counts;
}

TEST(SizeHistogram, EachBucketBeginsAtAPowerOfTwo) {
  EXPECT_EQ(counts_of(1), one_in(0));
  EXPECT_EQ(counts_of(2), one_in(1));
  EXPECT_EQ(counts_of(3), one_in(1));
  EXPECT_EQ(counts_of(4095), one_in(11));
  EXPECT_EQ(counts_of(4096), one_in(12));
}

TEST(SizeHistogram, TheLastBucketTakesAllThatIsLarger) {
  EXPECT_EQ(counts_of(std::uint64_t{1} << 23), one_in(23));
  EXPECT_EQ(counts_of(~std::uint64_t{0}), one_in(23));
}

TEST(SizeHistogram, NothingIsNotCounted) { EXPECT_EQ(counts_of(0), SizeHistogram::Counts{}); }

TEST(SizeHistogram, AddsToWhatIsThere) {
  SizeHistogram histogram;
  histogram.add(5);
  histogram.add(7);
  SizeHistogram::Counts counts = one_in(2);
  histogram.add_to(counts);
  EXPECT_EQ(counts.at(2), 3U);
}

}  // namespace
}  // namespace ipoverbs::transport
