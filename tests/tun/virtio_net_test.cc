#include "tun/virtio_net.h"

#include <netinet/in.h>

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tun/records.h"

namespace ipoverbs::tun {

// GoogleTest prints it when an expectation fails.
void PrintTo(HeaderCheck check, std::ostream* os) { *os << describe(check); }

namespace {

HeaderCheck check(const Record& record) { return check(record.header, record.packet); }

std::uint16_t header_length(const Record& record) {
  return true_header_length(record.packet, record.header);
}

TEST(VirtioNetHeader, BytesAreLittleEndianInTheOrderOfTheSpecification) {
  const VirtioNetHeader header{.flags = 1,
                               .gso_type = 0x81,
                               .hdr_len = Le16(0x0302),
                               .gso_size = Le16(0x0504),
                               .csum_start = Le16(0x0706),
                               .csum_offset = Le16(0x0908)};
  EXPECT_EQ((Record{header, {}}.bytes()), from_hex("01810203040506070809"));
}

TEST(Check, GoodRecordsAreOk) {
  EXPECT_EQ(check(tcp4_super_packet()), HeaderCheck::Ok);
  EXPECT_EQ(check(tcp6_super_packet()), HeaderCheck::Ok);
  EXPECT_EQ(check(udp4_super_packet()), HeaderCheck::Ok);
  EXPECT_EQ(check(udp4_partial()), HeaderCheck::Ok);
}

TEST(Check, GoodPlainPacketsAreOk) {
  const char* const records[] = {
      // UDP over IPv6, partial checksum
      ("0100000000002800060060000000000a1140fd770000000000000000000000000001fd77000000000000000000"
       "00000000029c400009000afb0d689e"),
      // UDP over IPv4, odd length
      "0100000000001400060045000021000140004011262f0a4d00010a4d00029c400009000d14bb68656c6c6f",
      // UDP without a checksum, header all zero
      "000000000000000000004500002000014000401126300a4d00010a4d00029c4012b5000c000008000000",
  };
  for (const char* hex : records) EXPECT_EQ(check(record_from_hex(hex)), HeaderCheck::Ok) << hex;
}

struct Nonsense {
  const char* name;
  const char* hex;
  HeaderCheck reason;
};

// A UDP datagram of 28 bytes under headers that make no sense on it.
TEST(Check, NonsenseIsNamed) {
  const Nonsense cases[] = {
      {"csum_start past the end",
       "0100000000001c0006004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumOutside},
      {"csum_start and csum_offset straddle the end",
       "010000000000140007004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumOutside},
      {"csum_start in the IP header",
       "0100000000000c0006004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumInIpHeader},
      {"TSO with gso_size 0",
       "010128000000140010004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumOutside},
      {"hdr_len beyond the packet",
       "01013c006400140010004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumOutside},
      {"unknown gso_type",
       "007f00006400000000004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::UnknownGsoType},
      {"TCP gso_type on UDP",
       "01011c006400140010004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::ChecksumOutside},
      {"GSO without NEEDS_CSUM",
       "000128006400140010004500001c00014000401126340a4d00010a4d00029c40000900080000",
       HeaderCheck::GsoWithoutChecksum},
  };
  for (const auto& [name, hex, reason] : cases) {
    EXPECT_EQ(check(record_from_hex(hex)), reason) << name;
  }
}

struct Mutation {
  const char* name;
  Record (*good)();
  std::function<void(Record&)> spoil;
  HeaderCheck reason;
};

void set16(Record& record, std::size_t offset, std::uint16_t value) {
  store(std::span(record.packet), offset, Be16(value));
}

void set8(Record& record, std::size_t offset, unsigned value) {
  record.packet[offset] = static_cast<std::byte>(value);
}

// Each differs from a good record by one field.
TEST(Check, EveryReasonIsFound) {
  const Mutation mutations[] = {
      {"no packet", udp4_partial, [](Record& r) { r.packet.clear(); }, HeaderCheck::PacketEmpty},
      {"65536 bytes", udp4_partial, [](Record& r) { r.packet.resize(65536); },
       HeaderCheck::PacketTooLong},
      {"version 0", udp4_partial, [](Record& r) { set8(r, 0, 0x05); }, HeaderCheck::BadIpVersion},
      {"version 5", udp4_partial, [](Record& r) { set8(r, 0, 0x55); }, HeaderCheck::BadIpVersion},
      {"version 15", udp4_partial, [](Record& r) { set8(r, 0, 0xf5); }, HeaderCheck::BadIpVersion},
      {"IHL 4", udp4_partial, [](Record& r) { set8(r, 0, 0x44); }, HeaderCheck::BadIpHeader},
      {"IHL 15 on 30 bytes", udp4_partial, [](Record& r) { set8(r, 0, 0x4f); },
       HeaderCheck::BadIpHeader},
      {"19 bytes of IPv4", udp4_partial, [](Record& r) { r.packet.resize(19); },
       HeaderCheck::BadIpHeader},
      {"39 bytes of IPv6", tcp6_super_packet, [](Record& r) { r.packet.resize(39); },
       HeaderCheck::BadIpHeader},
      {"flag 4", udp4_partial, [](Record& r) { r.header.flags |= 4; }, HeaderCheck::UnknownFlags},
      {"all flags", udp4_partial, [](Record& r) { r.header.flags = 0xff; },
       HeaderCheck::UnknownFlags},
      {"UFO", udp4_super_packet, [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_UDP; },
       HeaderCheck::UnknownGsoType},
      {"ECN alone", tcp4_super_packet,
       [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_ECN; }, HeaderCheck::UnknownGsoType},
      {"csum_start 65535", udp4_partial, [](Record& r) { r.header.csum_start = Le16(65535); },
       HeaderCheck::ChecksumOutside},
      {"csum_offset 65535", udp4_partial, [](Record& r) { r.header.csum_offset = Le16(65535); },
       HeaderCheck::ChecksumOutside},
      {"csum_start one before the end of the IP header", udp4_partial,
       [](Record& r) { r.header.csum_start = Le16(19); }, HeaderCheck::ChecksumInIpHeader},
      {"csum_start 0", udp4_partial, [](Record& r) { r.header.csum_start = Le16(0); },
       HeaderCheck::ChecksumInIpHeader},
      {"GSO with a complete checksum", tcp4_super_packet, [](Record& r) { r.header.flags = 0; },
       HeaderCheck::GsoWithoutChecksum},
      {"TCPV6 on IPv4", tcp4_super_packet,
       [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_TCPV6; },
       HeaderCheck::GsoWrongFamily},
      {"TCPV4 on IPv6", tcp6_super_packet,
       [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_TCPV4; },
       HeaderCheck::GsoWrongFamily},
      {"TCP type on UDP", udp4_super_packet,
       [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_TCPV4; },
       HeaderCheck::GsoWrongTransport},
      {"UDP type on TCP", tcp4_super_packet,
       [](Record& r) { r.header.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4; },
       HeaderCheck::GsoWrongTransport},
      {"first fragment", tcp4_super_packet, [](Record& r) { set16(r, 6, 0x2000); },
       HeaderCheck::GsoWrongTransport},
      {"later fragment", tcp4_super_packet, [](Record& r) { set16(r, 6, 0x0001); },
       HeaderCheck::GsoWrongTransport},
      {"next header TCP instead of options", tcp6_super_packet,
       [](Record& r) { set8(r, 6, IPPROTO_TCP); }, HeaderCheck::GsoTruncatedHeader},
      {"extension header past the end", tcp6_super_packet, [](Record& r) { set8(r, 41, 255); },
       HeaderCheck::GsoWrongTransport},
      {"TCP data offset 4", tcp4_super_packet, [](Record& r) { set8(r, 32, 0x40); },
       HeaderCheck::GsoTruncatedHeader},
      {"csum_start beside the TCP header", tcp4_super_packet,
       [](Record& r) { r.header.csum_start = Le16(21); }, HeaderCheck::GsoWrongChecksum},
      {"csum_start at the options", tcp6_super_packet,
       [](Record& r) { r.header.csum_start = Le16(40); }, HeaderCheck::GsoWrongChecksum},
      {"csum_offset of UDP", tcp4_super_packet, [](Record& r) { r.header.csum_offset = Le16(6); },
       HeaderCheck::GsoWrongChecksum},
      {"csum_offset of TCP", udp4_super_packet, [](Record& r) { r.header.csum_offset = Le16(16); },
       HeaderCheck::GsoWrongChecksum},
      {"IPv4 total length one too small", tcp4_super_packet, [](Record& r) { set16(r, 2, 2539); },
       HeaderCheck::GsoLengthMismatch},
      {"IPv6 payload length one too large", tcp6_super_packet, [](Record& r) { set16(r, 4, 179); },
       HeaderCheck::GsoLengthMismatch},
      {"UDP length of one segment", udp4_super_packet, [](Record& r) { set16(r, 24, 108); },
       HeaderCheck::GsoLengthMismatch},
      {"gso_size 0", tcp4_super_packet, [](Record& r) { r.header.gso_size = Le16(0); },
       HeaderCheck::GsoBadSize},
      {"gso_size 65535", tcp4_super_packet, [](Record& r) { r.header.gso_size = Le16(65535); },
       HeaderCheck::GsoBadSize},
      {"250 datagrams", udp4_super_packet, [](Record& r) { r.header.gso_size = Le16(1); },
       HeaderCheck::GsoTooManySegments},
      {"ECN on UDP", udp4_super_packet,
       [](Record& r) { r.header.gso_type |= VIRTIO_NET_HDR_GSO_ECN; },
       HeaderCheck::GsoUnexpectedEcnBit},
  };
  std::vector<bool> seen(kHeaderChecks);
  for (const auto& [name, good, spoil, reason] : mutations) {
    Record record = good();
    ASSERT_EQ(check(record), HeaderCheck::Ok) << name;
    spoil(record);
    EXPECT_EQ(check(record), reason) << name;
    seen[static_cast<std::size_t>(reason)] = true;
  }
  for (std::size_t i = 1; i < kHeaderChecks; ++i) {
    EXPECT_TRUE(seen[i]) << "no case for: " << describe(static_cast<HeaderCheck>(i));
  }
}

TEST(Check, BoundsAreTakenExactly) {
  Record record = udp4_partial();
  record.header.csum_start = Le16(28);  // the last two bytes
  record.header.csum_offset = Le16(0);
  EXPECT_EQ(check(record), HeaderCheck::Ok);
  record = udp4_super_packet();
  record.header.gso_size = Le16(2);  // 125 datagrams
  EXPECT_EQ(check(record), HeaderCheck::Ok);
  record = tcp4_super_packet();
  record.header.gso_size = Le16(65534);
  EXPECT_EQ(check(record), HeaderCheck::Ok);
}

TEST(Check, EcnGoesWithTcp) {
  Record record = tcp4_super_packet();
  record.header.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
  EXPECT_EQ(check(record), HeaderCheck::Ok);
}

TEST(Check, HdrLenIsNotLookedAt) {
  for (const unsigned lie : {0U, 1U, 39U, 2541U, 65535U}) {
    Record record = tcp4_super_packet();
    record.header.hdr_len = Le16(static_cast<std::uint16_t>(lie));
    EXPECT_EQ(check(record), HeaderCheck::Ok) << lie;
    EXPECT_EQ(header_length(record), 40) << lie;
  }
}

TEST(Check, EveryPrefixOfAGoodRecordHasAnAnswer) {
  for (const Record& good : {tcp4_super_packet(), tcp6_super_packet(), udp4_super_packet()}) {
    for (std::size_t size = 0; size < good.packet.size(); ++size) {
      const std::vector<std::byte> cut(good.packet.begin(),
                                       good.packet.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(check(good.header, cut), HeaderCheck::Ok) << size;
      EXPECT_LE(true_header_length(cut, good.header), size);
    }
  }
}

TEST(Describe, EveryReasonHasItsOwnWords) {
  for (std::size_t i = 0; i < kHeaderChecks; ++i) {
    const auto words = describe(static_cast<HeaderCheck>(i));
    EXPECT_FALSE(words.empty()) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(words, describe(static_cast<HeaderCheck>(j)));
  }
}

TEST(TrueHeaderLength, CountsIpAndTransport) {
  EXPECT_EQ(header_length(tcp4_super_packet()), 40);
  EXPECT_EQ(header_length(tcp6_super_packet()), 68);
  EXPECT_EQ(header_length(udp4_super_packet()), 28);
  EXPECT_EQ(header_length(udp4_partial()), 28);
}

TEST(TrueHeaderLength, CountsTcpOptions) {
  Record record = tcp4_super_packet();
  record.packet[32] = std::byte{0x80};
  EXPECT_EQ(header_length(record), 52);
  record.packet[32] = std::byte{0xf0};
  EXPECT_EQ(header_length(record), 80);
}

TEST(TrueHeaderLength, CountsIpv4Options) {
  Record record = udp4_partial();
  record.packet[0] = std::byte{0x46};
  record.packet.insert(record.packet.begin() + 20, 4, std::byte{1});
  record.header.flags = 0;
  EXPECT_EQ(header_length(record), 32);
}

TEST(TrueHeaderLength, OfAnUnknownTransportIsTheIpHeader) {
  Record record = udp4_partial();
  record.packet[9] = std::byte{IPPROTO_ICMP};
  record.header.flags = 0;
  EXPECT_EQ(header_length(record), 20);
}

TEST(TrueHeaderLength, OfAFragmentIsTheIpHeader) {
  Record record = udp4_partial();
  record.packet[7] = std::byte{1};
  record.header.flags = 0;
  EXPECT_EQ(header_length(record), 20);
}

TEST(TrueHeaderLength, ReachesTheChecksumThatIsAskedFor) {
  Record record = tcp4_super_packet();
  record.header.csum_start = Le16(100);  // of a packet inside this packet
  EXPECT_EQ(header_length(record), 118);
  record.header.csum_start = Le16(65000);
  EXPECT_EQ(header_length(record), 2540);
}

TEST(TrueHeaderLength, OfWhatIsNoIpPacketIsAllOfIt) {
  EXPECT_EQ(true_header_length(from_hex("ff00112233"), {}), 5);
  EXPECT_EQ(true_header_length({}, {}), 0);
}

// `count` extension headers of `length` bytes each, of type `type`, then `last`.
std::vector<std::byte> chain(std::uint8_t type, std::size_t count, std::size_t length,
                             std::uint8_t last) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::byte> header(length);
    header[0] = static_cast<std::byte>(i + 1 == count ? last : type);
    header[1] = static_cast<std::byte>(length / 8 - 1);
    bytes.insert(bytes.end(), header.begin(), header.end());
  }
  bytes.resize(bytes.size() + 8);  // a UDP header, or nothing
  return bytes;
}

TEST(FindTransport, WalksExtensionHeaders) {
  const auto packet = ipv6_packet(IPPROTO_DSTOPTS, chain(IPPROTO_DSTOPTS, 8, 16, IPPROTO_UDP));
  const TransportHeader at = find_transport(packet);
  EXPECT_EQ(at.offset, 40U + 8 * 16);
  EXPECT_EQ(at.protocol, IPPROTO_UDP);
  EXPECT_TRUE(at.present);
  EXPECT_EQ(true_header_length(packet, {}), 40 + 8 * 16 + 8);
}

TEST(FindTransport, GivesUpAfterSixteenExtensionHeaders) {
  EXPECT_TRUE(
      find_transport(ipv6_packet(IPPROTO_DSTOPTS, chain(IPPROTO_DSTOPTS, 16, 8, 17))).present);
  EXPECT_FALSE(
      find_transport(ipv6_packet(IPPROTO_DSTOPTS, chain(IPPROTO_DSTOPTS, 17, 8, 17))).present);
}

TEST(FindTransport, KnowsEveryKindOfExtensionHeader) {
  for (const unsigned number : {0U, 43U, 60U, 135U, 139U, 140U}) {
    const auto type = static_cast<std::uint8_t>(number);
    const auto at = find_transport(ipv6_packet(type, chain(type, 2, 24, IPPROTO_TCP)));
    EXPECT_EQ(at.offset, 40U + 48) << number;
    EXPECT_EQ(at.protocol, IPPROTO_TCP) << number;
  }
}

TEST(FindTransport, AuthenticationHeaderCountsInWordsOfFour) {
  auto headers = chain(IPPROTO_AH, 1, 24, IPPROTO_TCP);
  headers[1] = std::byte{4};  // 24 bytes
  const auto at = find_transport(ipv6_packet(IPPROTO_AH, headers));
  EXPECT_EQ(at.offset, 64U);
  EXPECT_TRUE(at.present);
}

TEST(FindTransport, AtomicFragmentIsNoFragment) {
  auto headers = chain(IPPROTO_FRAGMENT, 1, 8, IPPROTO_UDP);
  EXPECT_TRUE(find_transport(ipv6_packet(IPPROTO_FRAGMENT, headers)).present);
  headers[3] = std::byte{1};  // More Fragments
  const auto first = find_transport(ipv6_packet(IPPROTO_FRAGMENT, headers));
  EXPECT_FALSE(first.present);
  EXPECT_EQ(first.offset, 48U);
  headers[3] = std::byte{8};  // offset 1
  EXPECT_FALSE(find_transport(ipv6_packet(IPPROTO_FRAGMENT, headers)).present);
}

TEST(FindTransport, ExtensionHeaderPastTheEndIsWhereItStops) {
  auto headers = chain(IPPROTO_HOPOPTS, 1, 8, IPPROTO_UDP);
  headers[1] = std::byte{255};
  const auto at = find_transport(ipv6_packet(IPPROTO_HOPOPTS, headers));
  EXPECT_EQ(at.offset, 40U);
  EXPECT_EQ(at.protocol, IPPROTO_HOPOPTS);
  EXPECT_FALSE(at.present);
}

TEST(FindTransport, NothingFollowsNoNextHeaderAndEncryption) {
  EXPECT_FALSE(find_transport(ipv6_packet(IPPROTO_NONE, {})).present);
  EXPECT_FALSE(find_transport(ipv6_packet(IPPROTO_ESP, from_hex("0011223344556677"))).present);
}

}  // namespace
}  // namespace ipoverbs::tun
