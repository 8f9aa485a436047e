#include "tun/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace ipoverbs::tun {
namespace {

using ::testing::HasSubstr;

Prefix prefix(std::string_view text) { return Prefix::parse(text).value(); }

Config good() {
  Config config;
  config.name = "t0";
  config.queues = 4;
  config.addresses = {prefix("10.77.0.1/24"), prefix("fd77::1/64")};
  config.routes = {prefix("10.78.0.0/16"), prefix("fd78::/64")};
  return config;
}

// What validate() says about `config`, "" if nothing.
std::string complaint(const Config& config) {
  try {
    validate(config);
    return {};
  } catch (const UsageError& e) {
    return e.what();
  }
}

TEST(Validate, GoodConfigIsTaken) { EXPECT_EQ(complaint(good()), ""); }

TEST(Validate, NameIsWhatTheKernelTakes) {
  for (const char* name : {"t", "t0", "a.b-c_d", "fifteen-letters"}) {
    Config config = good();
    config.name = name;
    EXPECT_EQ(complaint(config), "") << name;
  }
  for (const char* name : {"", ".", "..", "a b", "a/b", "a:b", "t%d", "sixteen-letters.", "a\n"}) {
    Config config = good();
    config.name = name;
    EXPECT_THAT(complaint(config), HasSubstr("interface name")) << name;
  }
}

TEST(Validate, MtuBounds) {
  for (const std::uint32_t mtu : {68U, 1279U, 1280U, 1500U, 65520U}) {
    Config config = good();
    config.mtu = IpMtu(mtu);
    config.addresses = {prefix("10.77.0.1/24")};
    config.routes = {};
    EXPECT_EQ(complaint(config), "") << mtu;
  }
  for (const std::uint32_t mtu : {0U, 67U, 65521U, 65535U, 4294967295U}) {
    Config config = good();
    config.mtu = IpMtu(mtu);
    EXPECT_THAT(complaint(config), HasSubstr("outside 68..65520")) << mtu;
  }
}

TEST(Validate, Ipv6NeedsAnMtuOf1280) {
  Config config = good();
  config.mtu = IpMtu(1280);
  EXPECT_EQ(complaint(config), "");
  config.mtu = IpMtu(1279);
  EXPECT_THAT(complaint(config), HasSubstr("1280"));
}

TEST(Validate, Ipv6RouteAloneNeedsAnMtuOf1280) {
  Config config = good();
  config.mtu = IpMtu(1279);
  config.addresses = {prefix("10.77.0.1/24")};
  EXPECT_THAT(complaint(config), HasSubstr("fd78::/64"));
}

TEST(Validate, QueuesAreOneTo256) {
  for (const unsigned queues : {1U, 256U}) {
    Config config = good();
    config.queues = queues;
    EXPECT_EQ(complaint(config), "");
  }
  for (const unsigned queues : {0U, 257U}) {
    Config config = good();
    config.queues = queues;
    EXPECT_THAT(complaint(config), HasSubstr("outside 1..256"));
  }
}

TEST(Validate, GsoLimitsAreTheKernels) {
  Config config = good();
  config.gso_max_size = 65536;
  config.gso_max_segments = 65535;
  EXPECT_EQ(complaint(config), "");
  config.gso_max_size = 65537;
  EXPECT_THAT(complaint(config), HasSubstr("gso_max_size"));
  config.gso_max_size = 65536;
  config.gso_max_segments = 0;
  EXPECT_THAT(complaint(config), HasSubstr("gso_max_segs"));
}

TEST(Validate, AddressMustBeUnicast) {
  for (const char* address :
       {"0.0.0.0/0", "127.0.0.1/8", "224.0.0.1/24", "::/0", "::1/128", "ff02::1/64"}) {
    Config config = good();
    config.addresses = {prefix(address)};
    EXPECT_THAT(complaint(config), HasSubstr("cannot belong to an interface")) << address;
  }
}

TEST(Validate, NothingIsGivenTwice) {
  Config config = good();
  config.addresses.push_back(prefix("10.77.0.1/16"));
  EXPECT_THAT(complaint(config), HasSubstr("address 10.77.0.1/32 is given twice"));
  config = good();
  config.routes.push_back(prefix("10.78.1.2/16"));
  EXPECT_THAT(complaint(config), HasSubstr("route 10.78.0.0/16 is given twice"));
  config = good();
  config.routes.push_back(prefix("10.78.0.0/17"));
  EXPECT_EQ(complaint(config), "");
}

std::uint32_t queue_of(std::size_t bytes, std::uint32_t mtu, bool super_packets) {
  Config config;
  config.queue_bytes = bytes;
  config.mtu = IpMtu(mtu);
  config.super_packets = super_packets;
  return queue_packets(config);
}

TEST(QueuePackets, BytesOverMtu) {
  EXPECT_EQ(queue_of(std::size_t{16} << 20, 65520, false), 256U);
  EXPECT_EQ(queue_of(1500 * 1000, 1500, false), 1000U);
}

TEST(QueuePackets, SuperPacketsAreAsLargeWhateverTheMtu) {
  EXPECT_EQ(queue_of(std::size_t{16} << 20, 1500, true), 256U);
  EXPECT_EQ(queue_of(std::size_t{16} << 20, 65520, true), 256U);
}

TEST(QueuePackets, StaysBetweenFloorAndCeiling) {
  EXPECT_EQ(queue_of(0, 65520, true), kMinQueuePackets);
  EXPECT_EQ(queue_of(std::size_t{1} << 40, 68, false), kMaxQueuePackets);
}

}  // namespace
}  // namespace ipoverbs::tun
