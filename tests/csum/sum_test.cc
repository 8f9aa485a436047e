// sum() and copy(), and the kernels of every instruction set that this machine has, each forced in
// turn, against the reference.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csum/csum.h"
#include "tests/csum/memory.h"
#include "tests/csum/reference.h"

namespace ipoverbs::csum {
namespace {

constexpr std::size_t kLongest = 65535;
constexpr std::size_t kOffsets = 64;

// What is tested: the public functions or one pair of kernels.
struct Contestant {
  std::string name;
  std::function<Partial(std::span<const std::byte>)> sum;
  std::function<Partial(std::span<std::byte>, std::span<const std::byte>)> copy;
};

std::vector<Contestant> contestants() {
  std::vector<Contestant> all = {
      {"Public", [](std::span<const std::byte> from) { return sum(from); },
       [](std::span<std::byte> to, std::span<const std::byte> from) { return copy(to, from); }}};
  for (const detail::Kernels& kernels : detail::runnable_kernels()) {
    all.push_back({kernels.target,
                   [kernels](std::span<const std::byte> from) {
                     return Partial::of_accumulator(kernels.sum(from.data(), from.size()));
                   },
                   [kernels](std::span<std::byte> to, std::span<const std::byte> from) {
                     return Partial::of_accumulator(
                         kernels.copy(to.data(), from.data(), from.size()));
                   }});
  }
  return all;
}

class EachTarget : public testing::TestWithParam<Contestant> {
 protected:
  [[nodiscard]] Be16 sum_of(std::span<const std::byte> from, std::uint16_t initial = 0) const {
    return fold(Partial(Be16(initial)) + GetParam().sum(from));
  }
};

INSTANTIATE_TEST_SUITE_P(Csum, EachTarget, testing::ValuesIn(contestants()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Kernels, AreThoseOfTheMachineAndOneWithoutVectors) {
  const std::vector<detail::Kernels> all = detail::runnable_kernels();
  ASSERT_GE(all.size(), 2U) << "no vector kernel runs on this machine";
  EXPECT_STREQ(all.front().target, detail::kKernels.target);
  const std::string last = all.back().target;
  EXPECT_TRUE(last == "SCALAR" || last == "EMU128") << last;
  // Asking for all of them changed nothing.
  EXPECT_EQ(detail::choose_kernels().sum, detail::kKernels.sum);
}

// Every length from 0 to 9001 and every source offset from 0 to 63.
TEST_P(EachTarget, SumsEveryLengthAtEveryOffset) {
  const Bytes bytes = random_bytes(kOffsets + 9001, 1);
  Random random(2);
  for (std::size_t offset = 0; offset < kOffsets; ++offset) {
    const std::span<const std::byte> from = std::span(bytes).subspan(offset);
    reference::Summer summer;
    for (std::size_t n = 0; n <= 9001; ++n) {
      const auto initial = static_cast<std::uint16_t>(random());
      ASSERT_EQ(sum_of(from.first(n), initial).value(),
                reference::add(summer.sum().value(), initial))
          << n << " bytes at " << offset;
      if (n < 9001) summer.add_byte(from[n]);
    }
  }
}

TEST_P(EachTarget, SumsTheLongestPacketAtEveryOffset) {
  const Bytes bytes = random_bytes(kOffsets + kLongest, 3);
  for (std::size_t offset = 0; offset < kOffsets; ++offset) {
    const auto from = std::span(bytes).subspan(offset, kLongest);
    ASSERT_EQ(sum_of(from), reference::sum(from)) << offset;
  }
}

// Sums at the edge: the two zeros, and accumulators as full as they get.
TEST_P(EachTarget, KeepsTheTwoZerosApart) {
  for (std::size_t n = 1; n <= 2000; ++n) {
    ASSERT_EQ(sum_of(Bytes(n)), Be16(0)) << n;
    const Bytes ones(n, std::byte{0xff});
    ASSERT_EQ(sum_of(ones), reference::sum(ones)) << n;
  }
}

TEST_P(EachTarget, LosesNoCarryInLongSpans) {
  const Bytes ones(std::size_t{16} << 20, std::byte{0xff});
  EXPECT_EQ(sum_of(ones), Be16(0xffff));
  EXPECT_EQ(sum_of(std::span(ones).first(ones.size() - 1)), Be16(0xff00));
}

// Copies from any offset to any offset; the bytes around the destination must stay as they are.
class Copier {
 public:
  Copier(const Contestant& contestant, std::size_t longest)
      : contestant_(contestant),
        even_(random_bytes(kOffsets + longest, 4)),
        odd_(even_),
        to_(3 * kOffsets + longest, kStays) {
    for (std::byte& b : odd_) b = ~b;
  }

  // Every second call copies the complement, lest a byte that isn't written go unseen.
  [[nodiscard]] bool copies(std::size_t n, std::size_t from_offset, std::size_t to_offset) {
    turn_ = !turn_;
    const auto from = std::span<const std::byte>(turn_ ? even_ : odd_).subspan(from_offset, n);
    const auto around = std::span(to_).subspan(to_offset, n + 2 * kOffsets);
    const auto to = around.subspan(kOffsets, n);
    const Be16 sum = fold(contestant_.copy(to, from));
    // The sum without a copy has tests of its own.
    const bool right = sum == fold(contestant_.sum(from)) &&
                       (n == 0 || std::memcmp(to.data(), from.data(), n) == 0) &&
                       stays(around.first(kOffsets)) && stays(around.last(kOffsets));
    std::ranges::fill(to, kStays);
    return right;
  }

 private:
  static constexpr std::byte kStays{0x5a};
  static bool stays(std::span<const std::byte> bytes) {
    static constexpr auto kAll = [] {
      std::array<std::byte, kOffsets> all{};
      all.fill(kStays);
      return all;
    }();
    return std::memcmp(bytes.data(), kAll.data(), bytes.size()) == 0;
  }

  const Contestant& contestant_;
  Bytes even_;
  Bytes odd_;
  Bytes to_;
  bool turn_ = false;
};

// Every pair of offsets for every length up to 1407: twice round the loop of the widest vectors,
// with every remainder, so that each path through each kernel meets each pair.
constexpr std::size_t kAllPairs = 850;

TEST_P(EachTarget, CopiesShortSpansBetweenAllOffsets) {
  Copier copier(GetParam(), kAllPairs);
  for (std::size_t n = 0; n <= kAllPairs; ++n) {
    for (std::size_t pair = 0; pair < kOffsets * kOffsets; ++pair) {
      ASSERT_TRUE(copier.copies(n, pair / kOffsets, pair % kOffsets))
          << n << " bytes from " << pair / kOffsets << " to " << pair % kOffsets;
    }
  }
}

// Every longer length up to 9001 with every source offset and with every destination offset, in
// pairs that differ from length to length.
TEST_P(EachTarget, CopiesLongSpansAtAllOffsets) {
  Copier copier(GetParam(), 9001);
  for (std::size_t n = kAllPairs + 1; n <= 9001; ++n) {
    for (std::size_t from = 0; from < kOffsets; ++from) {
      const std::size_t to = (from * 37 + n) % kOffsets;
      ASSERT_TRUE(copier.copies(n, from, to)) << n << " bytes from " << from << " to " << to;
    }
  }
}

TEST_P(EachTarget, CopiesTheLongestPacketAtAllOffsets) {
  Copier copier(GetParam(), kLongest);
  for (std::size_t from = 0; from < kOffsets; ++from) {
    for (const std::size_t to : {from, (from * 37 + 1) % kOffsets}) {
      ASSERT_TRUE(copier.copies(kLongest, from, to)) << from << " to " << to;
    }
  }
}

// Spans that end, or begin, at a page that can't be touched: a byte too far ends the test.
TEST_P(EachTarget, TouchesNothingOutside) {
  const GuardedMemory source(kLongest);
  const GuardedMemory destination(kLongest);
  std::ranges::copy(random_bytes(kLongest, 5), source.first(kLongest).begin());
  std::vector<std::size_t> lengths = {1500, 4096, 9001, 16384, kLongest};
  for (std::size_t n = 0; n <= 1200; ++n) lengths.push_back(n);
  for (const std::size_t n : lengths) {
    for (const auto& from : {source.first(n), source.last(n)}) {
      const Be16 sum = sum_of(from);
      ASSERT_EQ(sum, reference::sum(from)) << n;
      ASSERT_EQ(fold(GetParam().copy(destination.first(n), from)), sum) << n;
      ASSERT_EQ(fold(GetParam().copy(destination.last(n), from)), sum) << n;
    }
  }
}

}  // namespace
}  // namespace ipoverbs::csum
