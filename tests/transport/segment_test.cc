#include "transport/segment.h"

#include <array>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csum/packet.h"
#include "tests/transport/segment_reference.h"
#include "tests/tun/records.h"

namespace ipoverbs::transport {
namespace {

using support::Bytes;
using testing::ElementsAre;

std::vector<Bytes> cut(const tun::Record& record) {
  EXPECT_EQ(tun::check(record.header, record.packet), tun::HeaderCheck::Ok);
  Segments segments(record.packet, record.header);
  std::vector<Bytes> all;
  // Not a byte is left as it was, nor one written that is not the segment's.
  Bytes out(segments.longest() + 8, std::byte{0xa5});
  while (const std::size_t n = segments.next(std::span(out).first(segments.longest()))) {
    all.emplace_back(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THAT(std::span(out).last(8), testing::Each(std::byte{0xa5}));
  }
  EXPECT_EQ(all.size(), segments.count());
  EXPECT_EQ(segments.next(out), 0U);
  return all;
}

std::vector<std::size_t> sizes(const std::vector<Bytes>& segments) {
  std::vector<std::size_t> all;
  for (const Bytes& s : segments) all.push_back(s.size());
  return all;
}

// One value from each segment.
template <class T>
auto each(const std::vector<Bytes>& segments, std::size_t offset) {
  std::vector<decltype(load<T>(std::span<const std::byte>{}, 0).value())> all;
  for (const Bytes& s : segments)
    all.push_back(load<T>(std::span<const std::byte>(s), offset).value());
  return all;
}

void expect_valid(const std::vector<Bytes>& segments) {
  for (const Bytes& s : segments) EXPECT_EQ(csum::verify(s), csum::Verdict::valid);
}

TEST(Segments, OfTcpOverIpv4) {
  tun::Record record = tun::tcp4_super_packet();
  store(std::span(record.packet), 33, std::uint8_t{0x99});  // CWR, ACK, PSH, FIN
  const auto segments = cut(record);
  EXPECT_THAT(sizes(segments), ElementsAre(1040, 1040, 540));
  EXPECT_THAT(each<Be16>(segments, 2), ElementsAre(1040, 1040, 540));  // total length
  const std::uint16_t first = load<Be16>(std::span<const std::byte>(record.packet), 4).value();
  EXPECT_THAT(each<Be16>(segments, 4),
              ElementsAre(first, static_cast<std::uint16_t>(first + 1),
                          static_cast<std::uint16_t>(first + 2)));  // identification: ffff, 0, 1
  // The sequence number begins at fffffc00 and goes through zero.
  EXPECT_THAT(each<Be32>(segments, 24), ElementsAre(0xfffffc00U, 0xffffffe8U, 0x3d0U));
  EXPECT_EQ(segments[0][33], std::byte{0x90});  // CWR, ACK
  EXPECT_EQ(segments[1][33], std::byte{0x10});  // ACK
  EXPECT_EQ(segments[2][33], std::byte{0x19});  // ACK, PSH, FIN
  expect_valid(segments);
}

TEST(Segments, OfTcpOverIpv6BehindOptions) {
  const auto segments = cut(tun::tcp6_super_packet());
  EXPECT_THAT(sizes(segments), ElementsAre(168, 118));
  EXPECT_THAT(each<Be16>(segments, 4), ElementsAre(128, 78));  // payload length
  EXPECT_THAT(each<Be32>(segments, 52), ElementsAre(100U, 200U));
  expect_valid(segments);
}

TEST(Segments, OfUdp) {
  const auto segments = cut(tun::udp4_super_packet());
  EXPECT_THAT(sizes(segments), ElementsAre(128, 128, 78));
  EXPECT_THAT(each<Be16>(segments, 24), ElementsAre(108, 108, 58));  // UDP length
  EXPECT_THAT(each<Be16>(segments, 4), ElementsAre(1, 2, 3));
  expect_valid(segments);
}

TEST(Segments, PayloadComesOutInOrder) {
  const tun::Record record = tun::tcp4_super_packet();
  Bytes payload;
  for (const Bytes& s : cut(record)) payload.insert(payload.end(), s.begin() + 40, s.end());
  EXPECT_EQ(payload, Bytes(record.packet.begin() + 40, record.packet.end()));
}

TEST(Segments, OneWhereAllFits) {
  tun::Record record = tun::tcp4_super_packet();
  for (const int size : {2500, 2501, 65534}) {
    record.header.gso_size = Le16(static_cast<std::uint16_t>(size));
    EXPECT_THAT(sizes(cut(record)), ElementsAre(2540));
  }
}

TEST(Segments, OneOfHeadersAlone) {
  tun::Record record = tun::tcp4_super_packet();
  record.packet.resize(40);
  store(std::span(record.packet), 2, Be16(40));
  EXPECT_THAT(sizes(cut(record)), ElementsAre(40));
}

// A UDP checksum that comes to zero is sent as ffff (RFC 768).
TEST(Segments, UdpWithASumOfZero) {
  tun::Record record = tun::udp4_super_packet();
  const auto before = cut(record);
  // Adding the checksum to the data makes the sum zero.
  const auto field = load<Be16>(std::span<const std::byte>(before[0]), 26).value();
  const auto word = load<Be16>(std::span<const std::byte>(before[0]), 28).value();
  const std::uint32_t sum = std::uint32_t{field} + word;
  store(std::span(record.packet), 28, Be16(static_cast<std::uint16_t>(sum + (sum >> 16))));
  EXPECT_EQ(each<Be16>(cut(record), 26)[0], 0xffff);
}

// Any length, any segment size, any start: the same as by the reference.
TEST(Segments, AsTheReferenceHasThem) {
  std::mt19937 random(1);
  const std::array originals{tun::tcp4_super_packet(), tun::tcp6_super_packet(),
                             tun::udp4_super_packet()};
  for (int round = 0; round < 3000; ++round) {
    tun::Record record = originals[random() % originals.size()];
    record.header.gso_size = Le16(static_cast<std::uint16_t>(2 + random() % 300));
    const bool tcp = record.header.gso_type != tun::VIRTIO_NET_HDR_GSO_UDP_L4;
    const std::span<std::byte> transport =
        std::span(record.packet).subspan(record.header.csum_start.value());
    if (tcp) {
      store(transport, 4, Be32(static_cast<std::uint32_t>(random())));
      store(transport, 13, static_cast<std::uint8_t>(random()));
    }
    for (std::byte& b : transport.subspan(tcp ? 20 : 8)) b = static_cast<std::byte>(random());
    if (tun::check(record.header, record.packet) != tun::HeaderCheck::Ok) continue;
    ASSERT_EQ(cut(record), reference::segments(record.packet, record.header)) << round;
  }
}

}  // namespace
}  // namespace ipoverbs::transport
