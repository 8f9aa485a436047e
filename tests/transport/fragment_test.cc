#include "transport/fragment.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/byte_order.h"
#include "csum/packet.h"
#include "tests/support/packets.h"

namespace ipoverbs::transport {
namespace {

using support::Bytes;
using support::ip_packet;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::uint16_t kMoreFragments = 0x2000;

std::size_t header_length(const Bytes& packet) {
  return (std::to_integer<std::size_t>(packet[0]) & 0x0f) * 4;
}
std::uint16_t word(const Bytes& packet, std::size_t at) {
  return load<Be16>(std::span<const std::byte>(packet), at).value();
}

// An IPv4 packet with options, random bytes behind its header, identification 0x1234.
Bytes packet_of(std::size_t payload, const Bytes& options = {}, std::uint16_t field = 0) {
  Bytes packet = ip_packet("10.77.0.1", "10.77.0.2", Bytes(payload));
  std::mt19937 random(1);
  for (std::size_t i = 20; i < packet.size(); ++i) packet[i] = static_cast<std::byte>(random());
  packet.insert(packet.begin() + 20, options.begin(), options.end());
  const std::span<std::byte> p(packet);
  store(p, 0, static_cast<std::uint8_t>(0x40 | (20 + options.size()) / 4));
  store(p, 2, Be16(static_cast<std::uint16_t>(packet.size())));
  store(p, 4, Be16(0x1234));
  store(p, 6, Be16(field));
  store(p, 10, csum::ipv4_header_checksum(p.first(20 + options.size())));
  return packet;
}

std::vector<Bytes> cut(const Bytes& packet, std::uint32_t mtu) {
  Fragments fragments(packet, IpMtu(mtu));
  std::vector<Bytes> all;
  const std::size_t count = fragments.left();
  Bytes out(mtu);
  while (const std::size_t n = fragments.next(out)) {
    all.emplace_back(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(fragments.left(), count - all.size());
  }
  EXPECT_THAT(all, SizeIs(count));
  return all;
}

// "length at offset", with "+" where more are to come.
std::vector<std::string> shape(const std::vector<Bytes>& fragments) {
  std::vector<std::string> lines;
  for (const Bytes& fragment : fragments) {
    const std::uint16_t field = word(fragment, 6);
    lines.push_back(fmt::format("{} at {}{}", fragment.size(), (field & 0x1fff) * 8,
                                (field & kMoreFragments) != 0 ? "+" : ""));
  }
  return lines;
}

// As the receiving host does it: payloads to where their offsets say.
Bytes reassembled(const std::vector<Bytes>& fragments) {
  Bytes payload;
  for (const Bytes& fragment : fragments) {
    const std::size_t at = std::size_t{8} * (word(fragment, 6) & 0x1fff);
    const auto begin = fragment.begin() + static_cast<std::ptrdiff_t>(header_length(fragment));
    payload.resize(std::max(payload.size(), at + static_cast<std::size_t>(fragment.end() - begin)));
    std::copy(begin, fragment.end(), payload.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return payload;
}

Bytes payload_of(const Bytes& packet) {
  return {packet.begin() + static_cast<std::ptrdiff_t>(header_length(packet)), packet.end()};
}

TEST(Fragments, AsLongAsTheMtuAndMultiplesOfEightAllow) {
  EXPECT_THAT(shape(cut(packet_of(4000), 1500)),
              ElementsAre("1500 at 0+", "1500 at 1480+", "1060 at 2960"));
  EXPECT_THAT(shape(cut(packet_of(4000), 1499)),
              ElementsAre("1492 at 0+", "1492 at 1472+", "1076 at 2944"));
}

TEST(Fragments, TheLastNeedNotBeAMultipleOfEight) {
  EXPECT_THAT(shape(cut(packet_of(1481), 1500)), ElementsAre("1500 at 0+", "21 at 1480"));
  EXPECT_THAT(shape(cut(packet_of(1487), 1506)), ElementsAre("1500 at 0+", "27 at 1480"));
}

TEST(Fragments, AFragmentOfAFragment) {
  constexpr std::uint16_t kAt800 = 100;
  EXPECT_THAT(shape(cut(packet_of(1600, {}, kAt800 | kMoreFragments), 1000)),
              ElementsAre("996 at 800+", "644 at 1776+"));
  EXPECT_THAT(shape(cut(packet_of(1600, {}, kAt800), 1000)),
              ElementsAre("996 at 800+", "644 at 1776"));
}

TEST(Fragments, AreWhatTheyWereTogether) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto mtu = std::uniform_int_distribution<std::uint32_t>(68, 3000)(random);
    const auto size = std::uniform_int_distribution<std::size_t>(mtu - 19, 9000)(random);
    const Bytes packet = packet_of(size);
    const std::vector<Bytes> fragments = cut(packet, mtu);
    ASSERT_EQ(reassembled(fragments), payload_of(packet)) << size << " bytes, MTU " << mtu;
    for (const Bytes& fragment : fragments) {
      ASSERT_LE(fragment.size(), mtu);
      ASSERT_EQ(word(fragment, 2), fragment.size());
      ASSERT_EQ(word(fragment, 4), 0x1234);
      ASSERT_TRUE(std::equal(fragment.begin() + 12, fragment.begin() + 20, packet.begin() + 12));
      const auto header = std::span(fragment).first(header_length(fragment));
      ASSERT_EQ(load<Be16>(header, 10), csum::ipv4_header_checksum(header));
    }
  }
}

// Record route (7) is in the first alone, stream id (136) in all; the padding is anew.
TEST(Fragments, OptionsThatAreCopied) {
  const Bytes options{std::byte{7},   std::byte{3}, std::byte{4}, std::byte{1},
                      std::byte{136}, std::byte{4}, std::byte{9}, std::byte{8}};
  const Bytes packet = packet_of(2000, options);
  const std::vector<Bytes> fragments = cut(packet, 1028);

  EXPECT_THAT(shape(fragments), ElementsAre("1028 at 0+", "1024 at 1000"));
  EXPECT_TRUE(std::equal(options.begin(), options.end(), fragments[0].begin() + 20));
  EXPECT_EQ(header_length(fragments[1]), 24U);
  EXPECT_TRUE(std::equal(options.begin() + 4, options.end(), fragments[1].begin() + 20));
  EXPECT_EQ(reassembled(fragments), payload_of(packet));
}

TEST(Fragments, OptionsBehindOneOfAWrongLengthAreNotCopied) {
  for (const std::byte wrong : {std::byte{0}, std::byte{1}, std::byte{9}}) {
    const Bytes options{std::byte{136}, std::byte{4}, std::byte{9}, std::byte{8},
                        std::byte{137}, wrong,        std::byte{0}, std::byte{0}};
    const std::vector<Bytes> fragments = cut(packet_of(2000, options), 1028);
    EXPECT_EQ(header_length(fragments[1]), 24U);
  }
}

TEST(Fragments, AllThatOptionsCanBe) {
  Bytes options(40, std::byte{1});
  options[0] = std::byte{137};
  options[1] = std::byte{39};
  const Bytes packet = packet_of(100, options);
  const std::vector<Bytes> fragments = cut(packet, 68);
  EXPECT_THAT(fragments, SizeIs(13));
  EXPECT_EQ(reassembled(fragments), payload_of(packet));
}

TEST(MayFragment, IPv4WithoutDf) {
  EXPECT_TRUE(may_fragment(packet_of(100)));
  EXPECT_TRUE(may_fragment(packet_of(100, {}, kMoreFragments)));
  EXPECT_FALSE(may_fragment(packet_of(100, {}, 0x4000)));
  EXPECT_TRUE(may_fragment(packet_of(100, {}, 8176)));
  EXPECT_FALSE(may_fragment(packet_of(108, {}, 8176)));  // beyond 65,535 bytes
  EXPECT_FALSE(may_fragment(ip_packet("fd77::1", "fd77::2", Bytes(100))));
}

}  // namespace
}  // namespace ipoverbs::transport
