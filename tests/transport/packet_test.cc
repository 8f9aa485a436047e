#include "transport/packet.h"

#include <gtest/gtest.h>

#include "tests/support/packets.h"

namespace ipoverbs::transport {
namespace {

using support::Bytes;
using support::ip_packet;
using support::to_bytes;

const Bytes kV4 = ip_packet("192.0.2.1", "192.0.2.2", to_bytes("payload!"));
const Bytes kV6 = ip_packet("2001:db8::1", "2001:db8::2", to_bytes("payload!"));

Bytes with(Bytes packet, std::size_t at, auto value) {
  store(std::span(packet), at, value);
  return packet;
}

TEST(ReadAddresses, OfBothVersions) {
  EXPECT_EQ(read_addresses(kV4)->source.to_string(), "192.0.2.1");
  EXPECT_EQ(read_addresses(kV4)->destination.to_string(), "192.0.2.2");
  EXPECT_EQ(read_addresses(kV6)->source.to_string(), "2001:db8::1");
  EXPECT_EQ(read_addresses(kV6)->destination.to_string(), "2001:db8::2");
}

TEST(ReadAddresses, RefusesEveryPrefixOfAPacket) {
  for (const Bytes& packet : {kV4, kV6}) {
    for (std::size_t n = 0; n < packet.size(); ++n) {
      EXPECT_FALSE(read_addresses(std::span(packet).first(n))) << n;
    }
  }
}

TEST(ReadAddresses, RefusesOtherVersions) {
  for (const unsigned version : {0U, 5U, 7U, 15U}) {
    EXPECT_FALSE(read_addresses(with(kV4, 0, static_cast<std::uint8_t>(version << 4 | 5))));
  }
}

TEST(ReadAddresses, RefusesAHeaderLengthThatDoesNotFit) {
  for (const unsigned ihl : {0U, 1U, 2U, 3U, 4U, 8U, 15U}) {
    const auto first = static_cast<std::uint8_t>(0x40 | ihl);
    EXPECT_FALSE(read_addresses(with(kV4, 0, first))) << ihl;
  }
  EXPECT_TRUE(read_addresses(with(kV4, 0, std::uint8_t{0x47})));
}

TEST(ReadAddresses, RefusesALengthFieldThatIsNotTheSize) {
  for (const int length : {0, 19, 27, 29, 65535}) {
    EXPECT_FALSE(read_addresses(with(kV4, 2, Be16(static_cast<std::uint16_t>(length)))));
  }
  for (const int length : {0, 7, 9, 65535}) {
    EXPECT_FALSE(read_addresses(with(kV6, 4, Be16(static_cast<std::uint16_t>(length)))));
  }
}

// Ports 1 and 2, then 2 and 1.
const Bytes kForth =
    ip_packet("192.0.2.1", "192.0.2.2", {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{2}});
const Bytes kBack =
    ip_packet("192.0.2.2", "192.0.2.1", {std::byte{0}, std::byte{2}, std::byte{0}, std::byte{1}});

TEST(FlowHash, IsTheSameInBothDirections) {
  EXPECT_EQ(flow_hash(kForth), flow_hash(kBack));
  const Bytes six_forth = ip_packet("2001:db8::1", "2001:db8::2", to_bytes("abcd"), 6);
  const Bytes six_back = ip_packet("2001:db8::2", "2001:db8::1", to_bytes("cdab"), 6);
  EXPECT_EQ(flow_hash(six_forth), flow_hash(six_back));
}

TEST(FlowHash, SeesPorts) {
  const Bytes other =
      ip_packet("192.0.2.1", "192.0.2.2", {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{3}});
  EXPECT_NE(flow_hash(kForth), flow_hash(other));
}

TEST(FlowHash, OfFragmentsSeesNoPorts) {
  const Bytes first = with(kForth, 6, Be16(0x2000));
  const Bytes second = with(with(kForth, 6, Be16(0x2001)), 20, Be32(0xdeadbeef));
  EXPECT_EQ(flow_hash(first), flow_hash(second));
}

TEST(FlowHash, OfATruncatedTransportHeaderReadsNothingBehindIt) {
  const Bytes three = ip_packet("192.0.2.1", "192.0.2.2", Bytes(3));
  EXPECT_EQ(flow_hash(three), flow_hash(ip_packet("192.0.2.1", "192.0.2.2", {})));
}

}  // namespace
}  // namespace ipoverbs::transport
