#include "transport/too_big.h"

#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "csum/packet.h"
#include "tests/support/packets.h"
#include "transport/packet.h"

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::address;
using support::Bytes;
using support::ip_packet;

constexpr std::uint16_t kDontFragment = 0x4000;

Bytes echo4(std::size_t size, std::uint16_t fragment = kDontFragment) {
  Bytes payload(size - 20, std::byte{0x42});
  payload[0] = std::byte{8};
  Bytes packet = ip_packet("10.77.0.1", "10.77.0.2", payload, 1);
  store(std::span(packet), 6, Be16(fragment));
  return packet;
}

Bytes echo6(std::size_t size) {
  Bytes payload(size - 40, std::byte{0x42});
  payload[0] = std::byte{128};
  return ip_packet("fd77::1", "fd77::2", payload, 58);
}

// Empty if there is none.
Bytes answer(const Bytes& packet, std::uint32_t mtu, std::size_t largest = 0) {
  Bytes out(kMaxTooBig, std::byte{0xa5});
  out.resize(write_too_big(out, packet, largest == 0 ? packet.size() : largest, IpMtu(mtu)));
  return out;
}

std::uint16_t word(const Bytes& bytes, std::size_t at) {
  return load<Be16>(std::span<const std::byte>(bytes), at).value();
}

TEST(TooBig, FragmentationNeeded) {
  const Bytes got = answer(echo4(8028), 4000);
  ASSERT_EQ(got.size(), 576U);
  const auto addresses = read_addresses(got);
  ASSERT_TRUE(addresses);
  // From the destination: Linux ignores an error whose source is its own address.
  EXPECT_EQ(addresses->source, address("10.77.0.2"));
  EXPECT_EQ(addresses->destination, address("10.77.0.1"));
  EXPECT_EQ(word(got, 20), 0x0304);  // type 3, code 4
  EXPECT_EQ(word(got, 24), 0);
  EXPECT_EQ(word(got, 26), 4000);
  EXPECT_EQ(csum::verify(got), csum::Verdict::valid);
  // Quotes the packet, as long as it was.
  EXPECT_EQ(word(got, 28), 0x4500);
  EXPECT_EQ(word(got, 30), 8028);
  EXPECT_EQ(got[28 + 20], std::byte{8});
  EXPECT_EQ(got.back(), std::byte{0x42});
}

TEST(TooBig, PacketTooBig) {
  const Bytes got = answer(echo6(8048), 4000);
  ASSERT_EQ(got.size(), 1280U);
  const auto addresses = read_addresses(got);
  ASSERT_TRUE(addresses);
  EXPECT_EQ(addresses->source, address("fd77::2"));
  EXPECT_EQ(addresses->destination, address("fd77::1"));
  EXPECT_EQ(word(got, 40), 0x0200);
  EXPECT_EQ(load<Be32>(std::span<const std::byte>(got), 44).value(), 4000U);
  EXPECT_EQ(csum::verify(got), csum::Verdict::valid);
  EXPECT_EQ(word(got, 48), 0x6000);
  EXPECT_EQ(word(got, 52), 8008);
}

TEST(TooBig, QuotesOneSegmentOfASuperPacket) {
  Bytes tcp(20000 - 20, std::byte{0x50});
  Bytes packet = ip_packet("10.77.0.1", "10.77.0.2", tcp, 6);
  store(std::span(packet), 6, Be16(kDontFragment));
  const Bytes four = answer(packet, 1500, 1501);
  ASSERT_EQ(four.size(), 576U);
  EXPECT_EQ(word(four, 30), 1501);
  EXPECT_TRUE(csum::is_ipv4_header_valid(std::span<const std::byte>(four).subspan(28, 20)));
  const Bytes six = answer(ip_packet("fd77::1", "fd77::2", tcp, 6), 1500, 1501);
  ASSERT_EQ(six.size(), 1280U);
  EXPECT_EQ(word(six, 52), 1461);
}

TEST(TooBig, AShortPacketIsQuotedWhole) {
  EXPECT_EQ(answer(echo4(200), 100).size(), 228U);
  EXPECT_EQ(answer(echo6(200), 100).size(), 248U);
}

TEST(TooBig, NoneForWhatMayBeFragmented) { EXPECT_TRUE(answer(echo4(8028, 0), 4000).empty()); }

TEST(TooBig, NoneForAnotherFragmentThanTheFirst) {
  EXPECT_TRUE(answer(echo4(8028, kDontFragment | 185), 4000).empty());
}

TEST(TooBig, NoneForMulticast) {
  Bytes four = ip_packet("10.77.0.1", "224.0.0.5", Bytes(8008));
  store(std::span(four), 6, Be16(kDontFragment));
  EXPECT_TRUE(answer(four, 4000).empty());
  EXPECT_TRUE(answer(ip_packet("fd77::1", "ff02::5", Bytes(8008)), 4000).empty());
}

TEST(TooBig, NoneForAnIcmpError) {
  for (const int type : {3, 4, 5, 11, 12}) {
    Bytes packet = echo4(8028);
    packet[20] = static_cast<std::byte>(type);
    EXPECT_TRUE(answer(packet, 4000).empty()) << type;
  }
  Bytes packet = echo6(8048);
  packet[40] = std::byte{2};
  EXPECT_TRUE(answer(packet, 4000).empty());
}

TEST(TooBigBudget, ABurstThenSoManyASecond) {
  TooBigBudget budget;
  TimePoint now = TimePoint(1000s);
  unsigned given = 0;
  for (int i = 0; i < 1000; ++i) given += budget.take(now) ? 1U : 0U;
  EXPECT_EQ(given, TooBigBudget::kBurst);
  given = 0;
  for (int i = 0; i < 1000; ++i) {
    now += 1ms;
    given += budget.take(now) ? 1U : 0U;
  }
  EXPECT_EQ(given, TooBigBudget::kPerSecond);
  now += 1h;
  given = 0;
  for (int i = 0; i < 1000; ++i) given += budget.take(now) ? 1U : 0U;
  EXPECT_EQ(given, TooBigBudget::kBurst);
}

}  // namespace
}  // namespace ipoverbs::transport
