#include "transport/route_table.h"

#include <algorithm>
#include <bit>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/byte_order.h"
#include "core/error.h"

namespace ipoverbs::transport {
namespace {

PeerOptions peer(const std::string& name, const std::vector<std::string>& prefixes) {
  PeerOptions p;
  p.name = name;
  for (const std::string& text : prefixes) p.prefixes.push_back(*Prefix::parse(text));
  return p;
}

Target lookup(const RouteTable& table, const char* address) {
  return table.lookup(*IpAddress::parse(address));
}

TEST(RouteTable, TheLongestPrefixWins) {
  const std::vector peers{peer("b", {"10.77.0.0/24", "fd77::/64"}),
                          peer("c", {"10.77.0.128/25", "10.77.0.200/32", "fd77::3/128"}),
                          peer("d", {"0.0.0.0/0"})};
  const RouteTable table(peers, std::vector{*Prefix::parse("10.77.0.1/24")});
  EXPECT_EQ(lookup(table, "10.77.0.2"), Target::peer(0));
  EXPECT_EQ(lookup(table, "10.77.0.129"), Target::peer(1));
  EXPECT_EQ(lookup(table, "10.77.0.200"), Target::peer(1));
  EXPECT_EQ(lookup(table, "10.77.0.1"), Target::own());
  EXPECT_EQ(lookup(table, "198.51.100.1"), Target::peer(2));
  EXPECT_EQ(lookup(table, "fd77::4"), Target::peer(0));
  EXPECT_EQ(lookup(table, "fd77::3"), Target::peer(1));
  EXPECT_EQ(lookup(table, "fd78::1"), Target());
}

TEST(RouteTable, OfNothingKnowsNothing) {
  const RouteTable table({}, {});
  EXPECT_EQ(lookup(table, "10.0.0.1"), Target());
  EXPECT_EQ(lookup(table, "::"), Target());
}

TEST(RouteTable, RefusesOnePrefixForTwoPeersAndNamesBoth) {
  const std::vector peers{peer("b", {"10.77.0.0/24"}), peer("c", {"10.77.0.0/24"})};
  try {
    const RouteTable table(peers, {});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("peers b and c both have 10.77.0.0/24"));
  }
}

TEST(RouteTable, RefusesOurOwnAddressForAPeer) {
  const std::vector peers{peer("b", {"10.77.0.1/32"})};
  EXPECT_THROW(RouteTable(peers, std::vector{*Prefix::parse("10.77.0.1/24")}), UsageError);
}

// A random address of the family, of which few bits vary, so that prefixes nest: some at the end,
// some on both sides of the middle of an IPv6 address.
IpAddress few_bits_vary(Family family, std::mt19937& random) {
  if (family == Family::v4) {
    return IpAddress::v4(std::bit_cast<std::array<std::byte, 4>>(
        Be32(0x0a000000U | static_cast<std::uint32_t>(random() & 0x0f0f))));
  }
  std::array<std::byte, 16> bytes{std::byte{0xfd}};
  for (const std::size_t i : {7U, 8U, 15U}) bytes.at(i) = static_cast<std::byte>(random() & 0x0f);
  return IpAddress::v6(bytes);
}

std::vector<PeerOptions> random_peers(Family family, std::mt19937& random) {
  std::vector<PeerOptions> peers;
  std::vector<Prefix> taken;
  for (int i = 0; i < 300; ++i) {
    const IpAddress address = few_bits_vary(family, random);
    const auto length = std::uniform_int_distribution<unsigned>(0, address.bits())(random);
    const Prefix prefix = Prefix(address, length).network();
    if (std::ranges::find(taken, prefix) != taken.end()) continue;
    taken.push_back(prefix);
    peers.emplace_back().prefixes = {prefix};
  }
  return peers;
}

// The obvious: of all prefixes that contain the address, the longest.
Target search(const std::vector<PeerOptions>& peers, const IpAddress& address) {
  Target best;
  unsigned longest = 0;
  for (PeerIndex p = 0; p < peers.size(); ++p) {
    const Prefix& prefix = peers[p].prefixes.front();
    if (!prefix.contains(address) || (best != Target() && prefix.length() < longest)) continue;
    best = Target::peer(p);
    longest = prefix.length();
  }
  return best;
}

class RouteTableFamilies : public testing::TestWithParam<Family> {};

TEST_P(RouteTableFamilies, AgreesWithASearchThroughAllPrefixes) {
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    const std::vector<PeerOptions> peers = random_peers(GetParam(), random);
    const RouteTable table(peers, {});
    for (int i = 0; i < 1000; ++i) {
      const IpAddress address = few_bits_vary(GetParam(), random);
      ASSERT_EQ(table.lookup(address), search(peers, address)) << address.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, RouteTableFamilies, testing::Values(Family::v4, Family::v6),
                         [](const auto& family) {
                           return family.param == Family::v4 ? "IPv4" : "IPv6";
                         });

}  // namespace
}  // namespace ipoverbs::transport
