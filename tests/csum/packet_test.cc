// Whole packets: vectors with known answers, everything that may go wrong one field at a time, and
// agreement with the plain reference.
#include "csum/packet.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "csum/csum.h"
#include "tests/csum/all_ways.h"
#include "tests/csum/packet_reference.h"
#include "tests/csum/vectors.h"

namespace ipoverbs::csum {
namespace {

// --- Completing
// -----------------------------------------------------------------------------------

TEST(Complete, Vectors) {
  EXPECT_EQ(completed(from_hex(kV1), kUdpInIpv4), from_hex(kV1Complete));
  EXPECT_EQ(completed(from_hex(kV2), kUdpInIpv6), from_hex(kV2Complete));
  EXPECT_EQ(completed(from_hex(kV3), kUdpInIpv4), from_hex(kV3Complete));
  EXPECT_EQ(verify_all_ways(from_hex(kV1Complete)), Verdict::valid);
  EXPECT_EQ(verify_all_ways(from_hex(kV2Complete)), Verdict::valid);
  EXPECT_EQ(verify_all_ways(from_hex(kV3Complete)), Verdict::valid);
}

// Every sum that two bytes of payload can make: no datagram leaves with a zero field.
TEST(Complete, UdpIsNeverZero) {
  for (unsigned payload = 0; payload <= 0xffff; ++payload) {
    for (const bool v4 : {true, false}) {
      Bytes packet = from_hex(v4 ? kV1 : kV2);
      store(std::span(packet), packet.size() - 2, Be16(static_cast<std::uint16_t>(payload)));
      const ChecksumPlace place = v4 ? kUdpInIpv4 : kUdpInIpv6;
      ASSERT_EQ(complete(packet, place), Completion::done);
      ASSERT_NE(field_of(packet, place), Be16(0)) << payload;
      ASSERT_EQ(verify(packet), Verdict::valid) << payload;
    }
  }
}

// The pseudo-header is summed from the packet: a seed without the length makes no difference.
TEST(Complete, BelievesNoSeedOfKnownProtocols) {
  const Bytes right = completed(v4_super_packet(0x1e7b), kTcpInIpv4);
  EXPECT_EQ(verify_all_ways(right), Verdict::valid);
  EXPECT_EQ(completed(v4_super_packet(0x14a3), kTcpInIpv4), right);
  EXPECT_EQ(completed(v4_super_packet(0xffff), kTcpInIpv4), right);
}

TEST(Complete, FindsTcpBehindExtensionHeaders) {
  const Layout layout = locate(v7_super_packet());
  EXPECT_EQ(layout.kind, LayoutKind::covered);
  EXPECT_EQ(layout.start, 48U);
  EXPECT_EQ(layout.protocol, Protocol::tcp);
  // What the kernel put there: the pseudo-header with the length of the TCP part, protocol 6.
  EXPECT_EQ(fold(layout.pseudo_header), Be16(0xfba2));
  EXPECT_EQ(verify_all_ways(completed(v7_super_packet(), {48, 16})), Verdict::valid);
}

// The inner packet of a tunnel in UDP: the field is the seed, as virtio says, and the outer
// datagram, which has no checksum, keeps its zero.
TEST(Complete, SumsFromWhereItIsToldInsideUdp) {
  const Bytes inner = tcp(random_bytes(101, 21));
  Bytes payload = random_bytes(50, 22);
  payload.insert(payload.end(), inner.begin(), inner.end());
  Bytes packet = ipv4_packet(Protocol::udp, udp(payload));
  const ChecksumPlace place{20 + 8 + 50, 16};
  store(std::span(packet), 20 + 8 + 50 + 16, Be16(0x1234));
  const Be16 right = checksum(Partial(reference::sum(std::span(packet).subspan(78))));
  ASSERT_EQ(complete_all_ways(packet, place), Completion::done);
  EXPECT_EQ(field_of(packet, place), right);
  EXPECT_EQ(field_of(packet, kUdpInIpv4), Be16(0));
}

TEST(Complete, BelievesTheSeedOfUnknownProtocols) {
  Bytes packet = ipv4_packet(Protocol{47}, random_bytes(99, 23));
  const ChecksumPlace place{24, 4};
  const Be16 right = checksum(Partial(reference::sum(std::span(packet).subspan(24))));
  ASSERT_EQ(complete_all_ways(packet, place), Completion::done);
  EXPECT_EQ(field_of(packet, place), right);
}

TEST(Complete, LeavesBytesBehindThePacketAlone) {
  Bytes packet = from_hex(kV3);
  const Bytes tail = random_bytes(7, 24);
  packet.insert(packet.end(), tail.begin(), tail.end());
  Bytes right = from_hex(kV3Complete);
  right.insert(right.end(), tail.begin(), tail.end());
  EXPECT_EQ(completed(packet, kUdpInIpv4), right);
}

// The vectors with nonsense in virtio's header, as far as it concerns a checksum.
TEST(Complete, RefusesPlacesOutside) {
  for (const ChecksumPlace place :
       {ChecksumPlace{28, 6},   // begins past the end
        ChecksumPlace{20, 7},   // the field straddles the end
        ChecksumPlace{12, 6},   // begins inside the IP header
        ChecksumPlace{20, 16},  // TCP's offset in UDP
        ChecksumPlace{0, 0}, ChecksumPlace{0, 26}, ChecksumPlace{19, 6}, ChecksumPlace{20, 0},
        ChecksumPlace{20, 5}, ChecksumPlace{65535, 65535}, ChecksumPlace{20, 65535},
        ChecksumPlace{65535, 0}}) {
    Bytes packet = from_hex(kV9);
    EXPECT_EQ(complete_all_ways(packet, place), Completion::bad_place)
        << place.start << " " << place.offset;
  }
  Bytes packet = from_hex(kV9);
  EXPECT_EQ(complete_all_ways(packet, kUdpInIpv4), Completion::done);
}

TEST(Complete, RefusesPlacesThatTheProtocolHasNot) {
  Bytes segment = ipv4_packet(Protocol::tcp, tcp(random_bytes(64, 25)));
  for (const ChecksumPlace place :
       {ChecksumPlace{20, 6}, ChecksumPlace{22, 14}, ChecksumPlace{40, 6}}) {
    EXPECT_EQ(complete_all_ways(segment, place), Completion::bad_place) << place.start;
  }
  Bytes super = v7_super_packet();
  // Where TCP would be without the extension header.
  EXPECT_EQ(complete_all_ways(super, kTcpInIpv6), Completion::bad_place);
}

TEST(Complete, RefusesFragments) {
  for (const std::uint16_t bits :
       std::initializer_list<std::uint16_t>{0x2000, 0x2001, 0x0001, 0x1fff}) {
    Bytes packet = from_hex(kV3);
    store(std::span(packet), 6, Be16(bits));
    EXPECT_EQ(complete_all_ways(packet, kUdpInIpv4), Completion::fragment) << bits;
  }
}

TEST(Complete, AnyLength) {
  for (const std::size_t n : {0UL, 1UL, 2UL, 63UL, 64UL, 65UL, 1472UL, 8999UL, 65507UL}) {
    const Bytes payload = random_bytes(n, n);
    EXPECT_EQ(verify_all_ways(completed(ipv4_packet(Protocol::udp, udp(payload)), kUdpInIpv4)),
              Verdict::valid);
    EXPECT_EQ(verify_all_ways(completed(ipv6_packet(Protocol::udp, udp(payload)), kUdpInIpv6)),
              Verdict::valid);
    if (n > 65495) continue;
    EXPECT_EQ(verify_all_ways(completed(ipv4_packet(Protocol::tcp, tcp(payload)), kTcpInIpv4)),
              Verdict::valid);
    EXPECT_EQ(verify_all_ways(completed(ipv6_packet(Protocol::tcp, tcp(payload)), kTcpInIpv6)),
              Verdict::valid);
    EXPECT_EQ(verify_all_ways(completed(ipv4_packet(Protocol::icmp, icmp_echo(payload)), {20, 2})),
              Verdict::valid);
    EXPECT_EQ(
        verify_all_ways(completed(ipv6_packet(Protocol::icmpv6, icmp_echo(payload)), {40, 2})),
        Verdict::valid);
  }
}

// --- Verifying
// ------------------------------------------------------------------------------------

// Each bit of each byte that a checksum covers.
void expect_every_bit_counts(const Bytes& packet, std::size_t from) {
  ASSERT_EQ(verify(packet), Verdict::valid);
  for (std::size_t at = from; at < packet.size(); ++at) {
    for (unsigned bit = 1; bit < 256; bit *= 2) {
      Bytes bad = packet;
      flip(bad, at, bit);
      ASSERT_EQ(verify_all_ways(bad), Verdict::wrong) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(Verify, SeesEveryBit) {
  const Bytes payload = random_bytes(33, 31);
  expect_every_bit_counts(completed(ipv4_packet(Protocol::tcp, tcp(payload)), kTcpInIpv4), 20);
  expect_every_bit_counts(completed(ipv6_packet(Protocol::tcp, tcp(payload)), kTcpInIpv6), 40);
  expect_every_bit_counts(completed(ipv4_packet(Protocol::icmp, icmp_echo(payload)), {20, 2}), 20);
  expect_every_bit_counts(completed(ipv6_packet(Protocol::icmpv6, icmp_echo(payload)), {40, 2}),
                          40);
}

TEST(Verify, SeesTheAddresses) {
  const Bytes payload = random_bytes(33, 32);
  Bytes v6 = completed(ipv6_packet(Protocol::udp, udp(payload)), kUdpInIpv6);
  for (std::size_t at = 8; at < 40; ++at) {
    flip(v6, at);
    EXPECT_EQ(verify_all_ways(v6), Verdict::wrong) << at;
    flip(v6, at);
  }
  // In IPv4 the header has a checksum of its own, which goes first.
  Bytes v4 = completed(ipv4_packet(Protocol::udp, udp(payload)), kUdpInIpv4);
  flip(v4, 13);
  EXPECT_EQ(verify_all_ways(v4), Verdict::wrong_ip_header);
  store(std::span(v4), 10, ipv4_header_checksum(std::span(v4).first(20)));
  EXPECT_EQ(verify_all_ways(v4), Verdict::wrong);
}

TEST(Verify, TakesEitherZeroInTcp) {
  Bytes packet = ipv4_packet(Protocol::tcp, tcp(Bytes(2)));
  // A payload that makes the sum zero.
  const Layout layout = locate(packet);
  store(std::span(packet), 40,
        checksum(layout.pseudo_header + sum(layout.covered_part(std::span(packet)))));
  store(std::span(packet), 36, Be16(0x0000));
  EXPECT_EQ(verify_all_ways(packet), Verdict::valid);
  store(std::span(packet), 36, Be16(0xffff));
  EXPECT_EQ(verify_all_ways(packet), Verdict::valid);
  store(std::span(packet), 36, Be16(0x0001));
  EXPECT_EQ(verify_all_ways(packet), Verdict::wrong);
}

TEST(Verify, UdpWithoutAChecksum) {
  EXPECT_EQ(verify_all_ways(from_hex(kV8)), Verdict::absent);
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol::udp, udp(random_bytes(9, 33)))),
            Verdict::zero_in_ipv6);
  EXPECT_TRUE(is_good(Verdict::absent));
  EXPECT_FALSE(is_good(Verdict::zero_in_ipv6));
}

TEST(Verify, WhatItDoesNotKnowIsNotWrong) {
  EXPECT_EQ(verify_all_ways(ipv4_packet(Protocol{132}, random_bytes(40, 34))), Verdict::unknown);
  EXPECT_EQ(verify_all_ways(ipv4_packet(Protocol::icmpv6, random_bytes(40, 34))), Verdict::unknown);
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol::icmp, random_bytes(40, 34))), Verdict::unknown);
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol{59}, {})), Verdict::unknown);
  EXPECT_TRUE(is_good(Verdict::unknown));
  Bytes bad = ipv4_packet(Protocol{132}, random_bytes(40, 34));
  flip(bad, 8);
  EXPECT_EQ(verify_all_ways(bad), Verdict::wrong_ip_header);
}

// A later fragment whose bytes look like a UDP header with a wrong checksum.
TEST(Verify, LooksAtNoFragment) {
  for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x2000, 0x00b9, 0x20b9}) {
    Bytes packet = ipv4_packet(Protocol::udp, udp(random_bytes(100, 35)));
    store(std::span(packet), 26, Be16(0xdead));
    store(std::span(packet), 6, Be16(bits));
    store(std::span(packet), 10, ipv4_header_checksum(std::span(packet).first(20)));
    const Bytes before = packet;
    EXPECT_EQ(verify_all_ways(packet), Verdict::unknown) << bits;
    EXPECT_EQ(make_partial(packet, locate(packet)), std::nullopt);
    EXPECT_EQ(packet, before);
  }
}

// Bytes behind the datagram but within the IP packet belong to no checksum (RFC 768).
TEST(Verify, UdpShorterThanItsPacket) {
  const Bytes datagram = udp(random_bytes(30, 36));
  Bytes longer = datagram;
  longer.resize(datagram.size() + 5, std::byte{0xee});
  const Bytes packet = completed(ipv4_packet(Protocol::udp, longer), kUdpInIpv4);
  EXPECT_EQ(verify_all_ways(packet), Verdict::valid);
  const Bytes exact = completed(ipv4_packet(Protocol::udp, datagram), kUdpInIpv4);
  EXPECT_EQ(field_of(packet, kUdpInIpv4), field_of(exact, kUdpInIpv4));
}

TEST(Verify, OptionsOfIpv4) {
  const Bytes payload = random_bytes(64, 37);
  const ChecksumPlace place{28, 6};
  // Router alert, no operation, end of options.
  const Bytes good =
      completed(ipv4_packet(Protocol::udp, udp(payload), from_hex("9404000001000000")), place);
  EXPECT_EQ(verify_all_ways(good), Verdict::valid);
  // Source routes: the pseudo-header has another destination than the IP header.
  for (const char* route : {"830704c000020100", "0189070440000201"}) {
    Bytes packet = ipv4_packet(Protocol::udp, udp(payload), from_hex(route));
    EXPECT_EQ(verify_all_ways(packet), Verdict::unknown) << route;
  }
  // Malformed options end the search.
  for (const char* options : {"0700830700000000", "07ff830700000000", "0101010101010107"}) {
    Bytes packet = ipv4_packet(Protocol::udp, udp(payload), from_hex(options));
    EXPECT_EQ(verify_all_ways(completed(packet, place)), Verdict::valid) << options;
  }
}

// --- Making partial
// -------------------------------------------------------------------------------

TEST(MakePartial, IsWhatTheKernelHandsOut) {
  Bytes packet = from_hex(kV3Complete);
  EXPECT_EQ(make_partial(packet, locate(packet)), kUdpInIpv4);
  EXPECT_EQ(packet, from_hex(kV3));
  // A super-packet: the seed with the full length.
  Bytes super = completed(v4_super_packet(0), kTcpInIpv4);
  EXPECT_EQ(make_partial(super, locate(super)), kTcpInIpv4);
  EXPECT_EQ(super, v4_super_packet(0x1e7b));
  Bytes extended = completed(v7_super_packet(), {48, 16});
  EXPECT_EQ(make_partial(extended, locate(extended)), (ChecksumPlace{48, 16}));
  EXPECT_EQ(extended, v7_super_packet());
}

TEST(MakePartial, LeavesTheRestAlone) {
  Bytes trailing = from_hex(kV3Complete);
  trailing.push_back(std::byte{0});
  Bytes shorter = from_hex(kV3Complete);
  store(std::span(shorter), 24, Be16(12));
  for (const Bytes& packet :
       {from_hex(kV8), trailing, shorter, Bytes{}, ipv4_packet(Protocol{47}, Bytes(20)),
        completed(ipv4_packet(Protocol::icmp, icmp_echo({})), {20, 2})}) {
    Bytes changed = packet;
    EXPECT_EQ(make_partial(changed, locate(changed)), std::nullopt);
    EXPECT_EQ(changed, packet);
  }
}

// --- The IPv4 header
// ------------------------------------------------------------------------------

TEST(Ipv4Header, ChecksumIsRightForEveryLength) {
  for (std::size_t n = 20; n <= 60; n += 4) {
    Bytes header = random_bytes(n, n);
    store(std::span(header), 10, ipv4_header_checksum(header));
    EXPECT_TRUE(is_ipv4_header_valid(header)) << n;
    EXPECT_EQ(reference::sum(header), Be16(0xffff)) << n;
    // It doesn't depend on what the field holds.
    const Be16 right = load<Be16>(header, 10);
    store(std::span(header), 10, Be16(0x1234));
    EXPECT_EQ(ipv4_header_checksum(header), right);
    EXPECT_EQ(is_ipv4_header_valid(header), right == Be16(0x1234));
  }
}

// --- Agreement
// ------------------------------------------------------------------------------------

// Good packets with a few bytes changed at random: the same answer as the reference, whatever it
// is.
TEST(Packet, AgreesWithTheReference) {
  Random random(61);
  const std::vector<Bytes> seeds = {
      from_hex(kV1Complete), from_hex(kV2Complete),
      from_hex(kV8),         from_hex(kV9),
      v7_super_packet(),     behind(Protocol::routing, "3c000400000000001100010400000000")};
  for (int i = 0; i < 100000; ++i) {
    Bytes packet = seeds[random() % seeds.size()];
    for (std::size_t changes = random() % 4; changes > 0; --changes) {
      const std::size_t reach = std::min<std::size_t>(packet.size(), 64);
      packet[random() % reach] = static_cast<std::byte>(random());
    }
    const auto place = ChecksumPlace{static_cast<std::uint16_t>(random() % 70),
                                     static_cast<std::uint16_t>(random() % 20)};
    verify_all_ways(packet);
    complete_all_ways(packet, place);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ipoverbs::csum
