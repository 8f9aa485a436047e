#include "core/ip.h"

#include <array>
#include <bit>

#include <gtest/gtest.h>

#include "core/byte_order.h"

namespace ipoverbs {
namespace {

TEST(IpAddress, ParsesWhatInetPtonParses) {
  EXPECT_EQ(IpAddress::parse("192.0.2.1")->to_string(), "192.0.2.1");
  EXPECT_EQ(IpAddress::parse("2001:DB8::1")->to_string(), "2001:db8::1");
  for (const char* bad : {"", "300.1.1.1", "1.2.3", "::g", "192.0.2.1/24", " 192.0.2.1"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("1.2.3.4\0", 8)));
}

TEST(IpAddress, KnowsItsKind) {
  EXPECT_TRUE(IpAddress::parse("224.0.0.1")->is_multicast());
  EXPECT_TRUE(IpAddress::parse("ff02::1")->is_multicast());
  EXPECT_FALSE(IpAddress::parse("192.0.2.1")->is_multicast());
  EXPECT_TRUE(IpAddress::parse("fe80::1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("febf::1")->is_link_local());
  EXPECT_FALSE(IpAddress::parse("fec0::1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("::1")->is_loopback());
  EXPECT_FALSE(IpAddress::parse("::2")->is_loopback());
  EXPECT_TRUE(IpAddress::parse("127.1.2.3")->is_loopback());
  EXPECT_TRUE(IpAddress::parse("::")->is_unspecified());
}

TEST(Prefix, ParsesAndRefuses) {
  EXPECT_EQ(Prefix::parse("10.0.0.5/24")->network().to_string(), "10.0.0.0/24");
  EXPECT_EQ(Prefix::parse("10.0.0.5")->length(), 32U);
  EXPECT_EQ(Prefix::parse("fd00::1/9")->network().to_string(), "fd00::/9");
  EXPECT_EQ(Prefix::parse("0.0.0.0/0")->length(), 0U);
  for (const char* bad :
       {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "::/129", "/8"}) {
    EXPECT_FALSE(Prefix::parse(bad)) << bad;
  }
}

TEST(Prefix, ContainsAndOverlaps) {
  const Prefix wide = *Prefix::parse("10.0.0.0/8");
  const Prefix narrow = *Prefix::parse("10.1.2.0/23");
  EXPECT_TRUE(wide.overlaps(narrow));
  EXPECT_TRUE(narrow.overlaps(wide));
  EXPECT_TRUE(narrow.contains(*IpAddress::parse("10.1.3.255")));
  EXPECT_FALSE(narrow.contains(*IpAddress::parse("10.1.4.0")));
  EXPECT_FALSE(Prefix::parse("0.0.0.0/0")->contains(*IpAddress::parse("::1")));
  EXPECT_TRUE(Prefix::parse("::/0")->contains(*IpAddress::parse("::1")));
}

TEST(Endpoint, SurvivesTheSocketAddress) {
  for (const char* text : {"192.0.2.7", "2001:db8::7"}) {
    const Endpoint e{*IpAddress::parse(text), 7471, 0};
    const sockaddr_storage storage = e.to_sockaddr();
    EXPECT_EQ(Endpoint::from_sockaddr(reinterpret_cast<const sockaddr&>(storage)), e);
  }
}

TEST(Ordered, StoresItsByteOrder) {
  const auto bytes = std::bit_cast<std::array<std::byte, 4>>(Be32(0x01020304));
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[3], std::byte{4});
  EXPECT_EQ(std::bit_cast<Le32>(bytes).value(), 0x04030201U);
}

}  // namespace
}  // namespace ipoverbs
