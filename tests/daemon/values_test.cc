#include "daemon/values.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/daemon/interfaces.h"

namespace ipoverbs::daemon {
namespace {

using namespace std::chrono_literals;

std::string show(const Parsed<std::uint64_t>& value) {
  return value ? fmt::format("{}", *value) : value.error();
}

std::string show(const Parsed<Duration>& value) {
  return value ? format_duration(*value) : value.error();
}

std::string show(const Parsed<verbs::RemoteAddress>& value) {
  if (!value) return value.error();
  return fmt::format("{} scope {}{}", value->endpoint.to_string(), value->endpoint.scope,
                     value->by_gid ? " gid" : "");
}

std::string show(const Parsed<PeerText>& value) {
  if (!value) return value.error();
  std::string text = fmt::format("{} at {}:", value->name, value->underlay.endpoint.to_string());
  for (const Prefix& prefix : value->prefixes) text += " " + prefix.to_string();
  return text;
}

std::string show(const Parsed<MapText>& value) {
  return value ? value->overlay.to_string() + " on " + value->underlay.to_string() : value.error();
}

TEST(Number, TakesWholeNumbersWithinRange) {
  EXPECT_EQ(show(parse_number("68", {68, 65520})), "68");
  EXPECT_EQ(show(parse_number("65520", {68, 65520})), "65520");
  EXPECT_EQ(show(parse_number("0x8001", {1, 65535})), "32769");
  for (const char* bad : {"67", "65521", "9000x", "-1", "+68", "", " 68", "1e3", "0x", "0xg",
                          "68.0", "18446744073709551684", "99999999999999999999999"}) {
    EXPECT_EQ(show(parse_number(bad, {68, 65520})),
              fmt::format("'{}' is not a number from 68 to 65520", bad));
  }
}

TEST(Bytes, TakesSuffixes) {
  EXPECT_EQ(show(parse_bytes("65536", {65536, 1 << 30})), "65536");
  EXPECT_EQ(show(parse_bytes("64K", {65536, 1 << 30})), "65536");
  EXPECT_EQ(show(parse_bytes("1024M", {65536, 1 << 30})), "1073741824");
  for (const char* bad : {"63K", "1025M", "K", "M", "", "1G", "1KK", "18014398509481984K"}) {
    EXPECT_EQ(show(parse_bytes(bad, {65536, 1 << 30})),
              fmt::format("'{}' is not a number of bytes from 65536 to 1073741824, as in 65536 or "
                          "4M",
                          bad));
  }
}

TEST(Time, NeedsItsUnit) {
  const DurationRange range{0s, 1s};
  EXPECT_EQ(parse_duration("50us", range), Duration(50us));
  EXPECT_EQ(parse_duration("20ms", range), Duration(20ms));
  EXPECT_EQ(parse_duration("1s", range), Duration(1s));
  EXPECT_EQ(parse_duration("0", range), Duration(0));
  for (const char* bad : {"5", "1001ms", "2s", "s", "", "-1s", "1 s", "1m", "1.5s",
                          "99999999999999999999s", "10000000000s"}) {
    EXPECT_EQ(show(parse_duration(bad, range)),
              fmt::format("'{}' is not a time from 0s to 1s with its unit us, ms or s", bad));
  }
  EXPECT_EQ(format_duration(1500us), "1500us");
  EXPECT_EQ(format_duration(3s), "3s");
  EXPECT_EQ(format_duration(1200ms), "1200ms");
}

TEST(Choices, AreNamedInTheComplaint) {
  EXPECT_EQ(parse_switch("on"), true);
  EXPECT_EQ(parse_switch("off"), false);
  EXPECT_EQ(parse_switch("yes").error(), "'yes' is neither on nor off");
  EXPECT_EQ(parse_choice("all", {"off", "all"}), 1U);
  EXPECT_EQ(parse_choice("some", {"off", "all"}).error(), "'some' is not one of off, all");
}

TEST(InterfaceName, IsWhatTheKernelTakes) {
  EXPECT_EQ(parse_interface_name("ipov0"), "ipov0");
  EXPECT_EQ(parse_interface_name("123456789012345"), "123456789012345");
  for (const char* bad : {"", "1234567890123456", "a/b", "a b", "a:b", "tun%d", ".", ".."}) {
    EXPECT_EQ(parse_interface_name(bad).error(),
              fmt::format("'{}' is not an interface name: 1 to 15 characters without blanks, '/', "
                          "':' and '%'",
                          bad));
  }
}

TEST(PrefixValue, Refuses) {
  EXPECT_EQ(parse_prefix("10.77.0.5/24")->to_string(), "10.77.0.5/24");
  EXPECT_EQ(parse_prefix("FD77:0::/64")->to_string(), "fd77::/64");
  EXPECT_EQ(parse_prefix("0.0.0.0/0")->to_string(), "0.0.0.0/0");
  for (const char* bad :
       {"300.1.1.1/24", "/33", "/0", "10.0.0.0/33", "fd00::/129", "10.0.0/8", "10.0.0.0/", "x"}) {
    EXPECT_EQ(parse_prefix(bad).error(),
              fmt::format("'{}' is not a prefix, as in 10.0.0.0/24 (length 0 to 32) or fd00::/64 "
                          "(0 to 128)",
                          bad));
  }
  EXPECT_EQ(parse_prefix("224.0.0.0/4").error(), "'224.0.0.0/4' is multicast; a prefix is unicast");
}

TEST(Underlay, TakesAddressesWithAndWithoutPort) {
  const std::pair<const char*, const char*> kCases[] = {
      {"192.0.2.1", "192.0.2.1:0 scope 0"},
      {"192.0.2.1:4756", "192.0.2.1:4756 scope 0"},
      {"2001:db8::1", "[2001:db8::1]:0 scope 0"},
      {"[2001:db8::1]", "[2001:db8::1]:0 scope 0"},
      {"[2001:db8::1]:1", "[2001:db8::1]:1 scope 0"},
      {"fe80::1%eth0", "[fe80::1]:0 scope 7"},
      {"[fe80::1%eth0]:65535", "[fe80::1]:65535 scope 7"},
      {"127.0.0.1", "127.0.0.1:0 scope 0"},
      {"gid:fe80::2:c903:1", "[fe80::2:c903:1]:0 scope 0 gid"},
      {"gid:[fe80::2:c903:1]:9", "[fe80::2:c903:1]:9 scope 0 gid"},
  };
  for (const auto& [text, right] : kCases)
    EXPECT_EQ(show(parse_underlay(text, index_of_eth0)), right);
}

TEST(Underlay, SaysWhatWouldBeRight) {
  const std::pair<const char*, const char*> kCases[] = {
      {"nosuch.invalid",
       "'nosuch.invalid' is not an IPv4 or IPv6 address; host names are not looked up"},
      {"", "'' is not an IPv4 or IPv6 address; host names are not looked up"},
      {"192.0.2.256", "'192.0.2.256' is not an IPv4 or IPv6 address; host names are not looked up"},
      {"192.0.2.0/24",
       "'192.0.2.0/24' is not an IPv4 or IPv6 address; host names are not looked up"},
      {"0.0.0.0", "'0.0.0.0' is not the address of one host"},
      {"ff02::1", "'ff02::1' is not the address of one host"},
      {"::ffff:192.0.2.1", "'::ffff:192.0.2.1' is a mapped IPv4 address; write the IPv4 address"},
      {"fe80::1", "'fe80::1' is link-local; add its network interface, as in fe80::1%eth0"},
      {"fe80::1%eth9", "'fe80::1%eth9': there is no network interface 'eth9'"},
      {"fe80::1%", "'fe80::1%': there is no network interface ''"},
      {"2001:db8::1%eth0", "'2001:db8::1%eth0': only a link-local IPv6 address takes %interface"},
      {"192.0.2.1%eth0", "'192.0.2.1%eth0': only a link-local IPv6 address takes %interface"},
      {"192.0.2.1:0", "port '0' is not a number from 1 to 65535"},
      {"192.0.2.1:", "port '' is not a number from 1 to 65535"},
      {"192.0.2.1:65536", "port '65536' is not a number from 1 to 65535"},
      {"[2001:db8::1",
       "'[2001:db8::1' is not an address; an IPv6 address with a port is "
       "[2001:db8::1]:4755"},
      {"[2001:db8::1]4755",
       "'[2001:db8::1]4755' is not an address; an IPv6 address with a port is "
       "[2001:db8::1]:4755"},
      {"gid:192.0.2.1", "'192.0.2.1' is not a GID, as in gid:fe80::2:c903:1:2"},
      {"gid:", "'' is not a GID, as in gid:fe80::2:c903:1:2"},
      {"gid:::", "'::' is not a GID, as in gid:fe80::2:c903:1:2"},
  };
  for (const auto& [text, right] : kCases)
    EXPECT_EQ(show(parse_underlay(text, index_of_eth0)), right);
}

TEST(Peer, HasUnderlayPrefixesAndPerhapsAName) {
  const std::pair<const char*, const char*> kCases[] = {
      {"192.0.2.2 10.0.0.2", "192.0.2.2 at 192.0.2.2:0: 10.0.0.2/32"},
      {"192.0.2.2:1 10.0.0.0/24,fd00::/64", "192.0.2.2:1 at 192.0.2.2:1: 10.0.0.0/24 fd00::/64"},
      {"192.0.2.2 \t 10.0.0.2 name=b.c-d_1", "b.c-d_1 at 192.0.2.2:0: 10.0.0.2/32"},
  };
  for (const auto& [text, right] : kCases) EXPECT_EQ(show(parse_peer(text, index_of_eth0)), right);
}

TEST(Peer, SaysWhatWouldBeRight) {
  const std::pair<std::string, std::string> kCases[] = {
      {"192.0.2.2", "'192.0.2.2' is not '<underlay>[:port] <prefix>[,<prefix>...] [name=<name>]'"},
      {"192.0.2.2 a b c",
       "'192.0.2.2 a b c' is not '<underlay>[:port] <prefix>[,<prefix>...] [name=<name>]'"},
      {"192.0.2.2 10.0.0.0/24,", "'10.0.0.0/24,' has an empty prefix; write 10.0.0.0/24,fd00::/64"},
      {"192.0.2.2 10.0.0.0/24 fd00::/64",
       "'fd00::/64' is not name=<name>; prefixes are separated by commas without blanks"},
      {"192.0.2.2 10.0.0.0/24 name=",
       "'' is not a name: 1 to 63 letters, digits, '.', '_' and '-'"},
      {"192.0.2.2 10.0.0.0/24 name=" + std::string(64, 'a'),
       "'" + std::string(60, 'a') +
           "...' is not a name: 1 to 63 letters, digits, '.', '_' and '-'"},
      {"host 10.0.0.0/24", "'host' is not an IPv4 or IPv6 address; host names are not looked up"},
  };
  for (const auto& [text, right] : kCases) EXPECT_EQ(show(parse_peer(text, index_of_eth0)), right);
}

TEST(Map, HasTwoPrefixesOfEquallyManyHosts) {
  EXPECT_EQ(show(parse_map("10.0.0.0/24 192.0.2.0/24")), "10.0.0.0/24 on 192.0.2.0/24");
  EXPECT_EQ(show(parse_map("fd00::/124 192.0.2.16/28")), "fd00::/124 on 192.0.2.16/28");
  EXPECT_EQ(show(parse_map("10.0.0.5/24 192.0.2.9/24")), "10.0.0.0/24 on 192.0.2.0/24");
  const std::pair<const char*, const char*> kCases[] = {
      {"10.0.0.0/24", "'10.0.0.0/24' is not '<overlay prefix> <underlay prefix>'"},
      {"10.0.0.0/24 192.0.2.0/25",
       "'10.0.0.0/24' and '192.0.2.0/25' have different numbers of host bits"},
      {"10.0.0.0/23 192.0.2.0/23",
       "'10.0.0.0/23' has 9 host bits; a map has at most 8 (256 peers)"},
      {"10.0.0.0/24 fe80::/120", "'fe80::/120' is link-local; a map's underlay is not"},
      {"10.0.0.0/33 192.0.2.0/24",
       "'10.0.0.0/33' is not a prefix, as in 10.0.0.0/24 (length 0 to 32) or fd00::/64 (0 to 128)"},
  };
  for (const auto& [text, right] : kCases) EXPECT_EQ(show(parse_map(text)), right);
}

}  // namespace
}  // namespace ipoverbs::daemon
