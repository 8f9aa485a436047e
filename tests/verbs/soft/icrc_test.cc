#include "verbs/soft/icrc.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/verbs/soft/golden.h"
#include "verbs/soft/ip_id.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {
namespace {

// One bit at a time, over bytes masked one by one: the reference.
std::uint32_t slow_icrc(std::vector<std::byte> ip_packet) {
  const bool v4 = (ip_packet[0] >> 4) == std::byte{4};
  const std::size_t udp = v4 ? 20 : 40;
  const auto mask = [&](std::size_t at) { ip_packet[at] = std::byte{0xff}; };
  if (v4) {
    for (const std::size_t at : {1U, 8U, 10U, 11U}) mask(at);
  } else {
    ip_packet[0] |= std::byte{0x0f};
    for (const std::size_t at : {1U, 2U, 3U, 7U}) mask(at);
  }
  for (const std::size_t at : {udp + 6, udp + 7, udp + 12}) mask(at);
  ip_packet.resize(ip_packet.size() - kIcrcSize);
  ip_packet.insert(ip_packet.begin(), 8, std::byte{0xff});
  std::uint32_t crc = 0xffffffff;
  for (const std::byte b : ip_packet) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0);
  }
  return ~crc;
}

// An IP packet from 192.0.2.1 or 2001:db8::1 with a right ICRC, random otherwise.
struct Sample {
  std::vector<std::byte> ip_packet;
  IcrcFlow flow;
  std::size_t headers = 0;
  [[nodiscard]] std::span<const std::byte> datagram() const {
    return std::span(ip_packet).subspan(headers);
  }
};

constexpr std::uint16_t kPort = 0xd123;

Sample sample(bool v4, std::size_t datagram, std::uint16_t id, bool df, std::mt19937& random) {
  Sample s;
  s.headers = v4 ? golden::kHeadersV4 : golden::kHeadersV6;
  s.ip_packet.resize(s.headers + datagram);
  for (std::byte& b : s.ip_packet) b = static_cast<std::byte>(random());
  const std::span ip(s.ip_packet);
  const auto source = *IpAddress::parse(v4 ? "192.0.2.1" : "2001:db8::1");
  const auto destination = *IpAddress::parse(v4 ? "192.0.2.2" : "2001:db8::2");
  const std::size_t at = v4 ? 12 : 8;
  std::ranges::copy(source.bytes(), ip.subspan(at).begin());
  std::ranges::copy(destination.bytes(), ip.subspan(at + source.bytes().size()).begin());
  if (v4) {
    ip[0] = std::byte{0x45};
    store(ip, 2, Be16(static_cast<std::uint16_t>(s.ip_packet.size())));
    store(ip, 4, Be16(id));
    store(ip, 6, Be16(df ? 0x4000 : 0));
    ip[9] = std::byte{17};
  } else {
    ip[0] = std::byte{0x60};
    store(ip, 4, Be16(static_cast<std::uint16_t>(datagram + 8)));
    ip[6] = std::byte{17};
  }
  const std::size_t udp = s.headers - 8;
  store(ip, udp, Be16(kPort));
  store(ip, udp + 2, Be16(kRocePort));
  store(ip, udp + 4, Be16(static_cast<std::uint16_t>(datagram + 8)));
  store(ip, s.ip_packet.size() - kIcrcSize, Le32(slow_icrc(s.ip_packet)));
  s.flow = IcrcFlow(source, kPort, destination, kRocePort);
  return s;
}

TEST(Icrc, SlowReferenceAgreesWithRxe) {
  for (const auto hex : {golden::kAckV4, golden::kSendOnlyV4, golden::kAckV6}) {
    const auto packet = golden::bytes(hex);
    EXPECT_EQ(slow_icrc(packet), load<Le32>(packet, packet.size() - kIcrcSize).value());
  }
}

TEST(Icrc, MatchesRxeAndFindsTheIdentification) {
  const IpAddress a = *IpAddress::parse("10.99.0.1");
  const IpAddress b = *IpAddress::parse("10.99.0.2");
  const auto ack = golden::bytes(golden::kAckV4);
  EXPECT_EQ(icrc_matches(IcrcFlow(a, 0xf39d, b, kRocePort),
                         std::span(ack).subspan(golden::kHeadersV4), 0),
            0x1814);
  const auto ack6 = golden::bytes(golden::kAckV6);
  EXPECT_EQ(icrc_matches(IcrcFlow(*IpAddress::parse("fd99::1"), 0xf903,
                                  *IpAddress::parse("fd99::2"), kRocePort),
                         std::span(ack6).subspan(golden::kHeadersV6), 77),
            0);
}

TEST(Icrc, AgreesWithTheSlowReference) {
  std::mt19937 random(1);
  for (std::size_t size = 16; size <= 300; ++size) {
    for (const bool v4 : {true, false}) {
      const auto id = static_cast<std::uint16_t>(random());
      const Sample s = sample(v4, size, id, true, random);
      EXPECT_EQ(icrc_matches(s.flow, s.datagram(), 0), v4 ? id : 0);
      EXPECT_EQ(icrc_matches(s.flow, s.datagram(), id), v4 ? id : 0);
      EXPECT_EQ(icrc_matches(s.flow, s.datagram(), static_cast<std::uint16_t>(id + 1)),
                v4 ? id : 0);
    }
  }
}

TEST(Icrc, SolvesEveryIdentificationWithAndWithoutDf) {
  std::mt19937 random(2);
  for (unsigned id = 0; id < 0x10000; id += 37) {
    for (const bool df : {true, false}) {
      const Sample s = sample(true, 16 + id % 64, static_cast<std::uint16_t>(id), df, random);
      EXPECT_EQ(icrc_matches(s.flow, s.datagram(), 3), id) << df;
    }
  }
  const Sample largest = sample(true, kMaxDatagram, 0xbeef, true, random);
  EXPECT_EQ(icrc_matches(largest.flow, largest.datagram(), 0), 0xbeef);
}

// Every single bit flipped, the ICRC's own included, is noticed; only BTH byte 4 may change. Over
// IPv4 the identification is found by solving for it, and the sender is one of ours. The largest
// datagram has every distance that a bit can have from the identification.
TEST(Icrc, NoticesEveryFlippedBit) {
  std::mt19937 random(3);
  for (const bool v4 : {true, false}) {
    for (const std::size_t size : {std::size_t{16}, std::size_t{48}, kMaxDatagram}) {
      Sample s = sample(v4, size, 5, true, random);
      IpIdTracker ids;
      ASSERT_TRUE(ids.accept(0, {}));
      for (std::size_t bit = 0; bit < size * 8; ++bit) {
        std::byte& byte = s.ip_packet[s.headers + bit / 8];
        const std::byte flip{static_cast<std::uint8_t>(1U << bit % 8)};
        byte ^= flip;
        const auto id = icrc_matches(s.flow, s.datagram(), 0);
        EXPECT_EQ(id && ids.accept(*id, {}), bit / 8 == 4) << bit;
        byte ^= flip;
      }
    }
  }
}

TEST(Icrc, NoticesAnotherFlow) {
  std::mt19937 random(4);
  const Sample s = sample(true, 64, 0, true, random);
  const IpAddress one = *IpAddress::parse("192.0.2.1");
  const IpAddress two = *IpAddress::parse("192.0.2.2");
  EXPECT_TRUE(icrc_matches(IcrcFlow(one, kPort, two, kRocePort), s.datagram(), 0));
  EXPECT_FALSE(icrc_matches(IcrcFlow(one, kPort + 1, two, kRocePort), s.datagram(), 0));
  EXPECT_FALSE(icrc_matches(IcrcFlow(two, kPort, one, kRocePort), s.datagram(), 0));
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
