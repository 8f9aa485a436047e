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

// Against the obvious: of all prefixes that contain the address, the longest.
TEST(RouteTable, AgreesWithASearchThroughAllPrefixes) {
  std::mt19937 random(1);
  std::vector<PeerOptions> peers;
  std::vector<Prefix> taken;
  for (PeerIndex i = 0; i < 200; ++i) {
    PeerOptions p;
    const auto length = std::uniform_int_distribution<unsigned>(0, 32)(random);
    // Few bits vary, so that prefixes nest.
    const auto bytes =
        std::bit_cast<std::array<std::byte, 4>>(Be32(0x0a000000U | (random() & 0x0f0f)));
    const Prefix prefix = Prefix(IpAddress::v4(bytes), length).network();
    if (std::ranges::find(taken, prefix) != taken.end()) continue;
    taken.push_back(prefix);
    p.prefixes = {prefix};
    peers.push_back(p);
  }
  const RouteTable table(peers, {});
  for (int i = 0; i < 5000; ++i) {
    const auto bytes =
        std::bit_cast<std::array<std::byte, 4>>(Be32(0x0a000000U | (random() & 0x0f0f)));
    const IpAddress address = IpAddress::v4(bytes);
    Target best;
    unsigned longest = 0;
    for (PeerIndex p = 0; p < peers.size(); ++p) {
      const Prefix& prefix = peers[p].prefixes.front();
      if (!prefix.contains(address) || (best != Target() && prefix.length() < longest)) continue;
      best = Target::peer(p);
      longest = prefix.length();
    }
    ASSERT_EQ(table.lookup(address), best) << address.to_string();
  }
}

}  // namespace
}  // namespace ipoverbs::transport
