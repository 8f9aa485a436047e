#include "csum/partial.h"

#include <array>

#include <gtest/gtest.h>

#include "csum/csum.h"
#include "tests/csum/memory.h"
#include "tests/csum/reference.h"

namespace ipoverbs::csum {
namespace {

std::uint16_t word(Random& random) { return static_cast<std::uint16_t>(random()); }

TEST(Partial, AddsWordsAsTheReferenceDoes) {
  for (std::uint32_t a = 0; a <= 0xffff; a += 0x101) {
    for (std::uint32_t b = 0; b <= 0xffff; b += 0xff) {
      const auto first = static_cast<std::uint16_t>(a);
      const auto second = static_cast<std::uint16_t>(b);
      ASSERT_EQ(fold(Partial(Be16(first)) + Partial(Be16(second))),
                Be16(reference::add(first, second)));
    }
  }
}

TEST(Partial, FoldsFullAccumulators) {
  EXPECT_EQ(fold(Partial::of_accumulator(0)), Be16(0));
  EXPECT_EQ(fold(Partial::of_accumulator(~std::uint64_t{0})), Be16(0xffff));
  EXPECT_EQ(fold(Partial::of_accumulator(0xffff0000ffff0000)), Be16(0xffff));
  EXPECT_EQ(fold(Partial(Be16(0xfffe)) + Partial(Be16(0x0003))), Be16(0x0002));
}

TEST(Partial, CombinesAtOddOffsets) {
  const Bytes bytes = random_bytes(301, 11);
  const auto whole = std::span(bytes);
  for (std::size_t at = 0; at <= bytes.size(); ++at) {
    const Partial sum_of_both = sum(whole.first(at)) + sum(whole.subspan(at)).at_offset(at);
    ASSERT_EQ(fold(sum_of_both), reference::sum(whole)) << at;
  }
  EXPECT_EQ(fold(Partial(Be16(0x1234)).at_offset(1)), Be16(0x3412));
  EXPECT_EQ(fold(Partial(Be16(0x1234)).at_offset(2)), Be16(0x1234));
}

TEST(Partial, NegativeCancels) {
  Random random(12);
  for (int i = 0; i < 1000; ++i) {
    const Partial p(Be16(word(random)));
    const Partial q(Be16(word(random)));
    ASSERT_EQ(fold(p + -p), Be16(0xffff));
    ASSERT_EQ((p + q + -p).folded() % 0xffff, q.folded() % 0xffff);
  }
}

TEST(Checksum, OfUdpIsNeverZero) {
  for (std::uint32_t sum = 0; sum <= 0xffff; ++sum) {
    const Partial partial(Be16(static_cast<std::uint16_t>(sum)));
    ASSERT_EQ(checksum(partial).value(), 0xffff - sum);
    ASSERT_EQ(udp_checksum(partial).value(), sum == 0xffff ? 0xffff : 0xffff - sum);
  }
}

TEST(Checksum, IsValidWithItsField) {
  Random random(13);
  for (int i = 0; i < 1000; ++i) {
    const Partial rest(Be16(word(random)));
    EXPECT_TRUE(is_valid(rest + Partial(checksum(rest))));
    EXPECT_TRUE(is_valid(rest + Partial(udp_checksum(rest))));
    EXPECT_FALSE(is_valid(rest + Partial(checksum(rest)) + Partial(Be16(1))));
  }
}

// RFC 1624, section 4: where RFC 1141 ends at 0xffff, the right answer is 0x0000.
TEST(Update, GivesTheRightZero) {
  EXPECT_EQ(update(Be16(0xdd2f), Be16(0x5555), Be16(0x3285)), Be16(0x0000));
}

// Changing words of a packet and updating gives what summing anew gives.
TEST(Update, EqualsSummingAnew) {
  Random random(14);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::byte, 20> packet{};
    for (std::byte& b : packet) b = static_cast<std::byte>(random());
    const std::size_t at = random() % 10 * 2;
    const std::size_t length = random() % (packet.size() - at + 1);
    const auto part = std::span(packet).subspan(at, length);
    const Partial removed = sum(part);
    const Be16 before = checksum(sum(packet));
    for (std::byte& b : part) b = static_cast<std::byte>(i % 3 == 0 ? 0 : random());
    ASSERT_EQ(update(before, removed, sum(part)).value() % 0xffff,
              checksum(sum(packet)).value() % 0xffff);
  }
}

TEST(Update, LeavesUdpWithoutAChecksumAlone) {
  EXPECT_EQ(update_udp(Be16(0), Partial(Be16(1)), Partial(Be16(2))), Be16(0));
  EXPECT_EQ(update_udp(Be16(0xdd2f), Partial(Be16(0x5555)), Partial(Be16(0x3285))), Be16(0xffff));
  EXPECT_EQ(update_udp(Be16(0x1234), Partial(Be16(1)), Partial(Be16(2))), Be16(0x1233));
}

TEST(Update, OfAPartialChecksumChangesThePseudoHeader) {
  EXPECT_EQ(update_partial(Be16(0x14bb), Partial(Be16(1)), Partial(Be16(3))), Be16(0x14bd));
}

template <std::size_t N>
std::array<std::byte, N> bytes_of(std::array<std::uint8_t, N> values) {
  std::array<std::byte, N> bytes{};
  for (std::size_t i = 0; i < N; ++i) bytes[i] = std::byte{values[i]};
  return bytes;
}

// 10.77.0.1 to 10.77.0.2: the seeds of vectors V3 and V4, whose lengths are 13 and 2520.
TEST(PseudoHeader, OfIpv4) {
  const auto from = bytes_of<4>({10, 77, 0, 1});
  const auto to = bytes_of<4>({10, 77, 0, 2});
  EXPECT_EQ(fold(pseudo_header(std::span(from), std::span(to), Protocol::udp, std::uint16_t{13})),
            Be16(0x14bb));
  EXPECT_EQ(fold(pseudo_header(std::span(from), std::span(to), Protocol::tcp, std::uint16_t{2520})),
            Be16(0x1e7b));
}

// The pseudo-header laid out as RFC 8200, section 8.1, draws it, with a length above 16 bits.
TEST(PseudoHeader, OfIpv6) {
  Bytes header = random_bytes(40, 15);
  const std::span<std::byte> all(header);
  for (const std::uint32_t length : {0U, 13U, 65535U, 65536U, 0x12345678U}) {
    store(all, 32, Be32(length));
    store(all, 36, Be32(static_cast<std::uint32_t>(Protocol::icmpv6)));
    EXPECT_EQ(
        fold(pseudo_header(all.subspan<0, 16>(), all.subspan<16, 16>(), Protocol::icmpv6, length)),
        reference::sum(header))
        << length;
  }
}

}  // namespace
}  // namespace ipoverbs::csum
