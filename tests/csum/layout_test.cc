// Where packets keep their checksums: extension headers, and packets that lie.
#include "csum/layout.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "csum/packet.h"
#include "tests/csum/all_ways.h"
#include "tests/csum/vectors.h"

namespace ipoverbs::csum {
namespace {

// --- Extension headers
// ----------------------------------------------------------------------------

TEST(ExtensionHeaders, AreWalked) {
  struct Case {
    Protocol first;
    const char* headers;
  };
  for (const Case& c : {
           Case{Protocol::hop_by_hop, "1100050200000100"},
           Case{Protocol::routing, "1100040000000000"},  // no segments left
           Case{Protocol::destination_options, "1101010c000000000000000000000000"},
           Case{Protocol::fragment, "1100000012345678"},  // atomic
           Case{Protocol::fragment, "11ff000612345678"},  // reserved bits set
           Case{Protocol::authentication, "1104000000000001000000020102030405060708090a0b0c"},
           Case{Protocol::mobility, "1100000000000000"},
           Case{Protocol::hop_by_hop, "3c000104000000002b000104000000001100040000000000"},
       }) {
    const Bytes packet = behind(c.first, c.headers);
    const Layout layout = locate(packet);
    ASSERT_EQ(layout.kind, LayoutKind::covered) << c.headers;
    EXPECT_EQ(layout.protocol, Protocol::udp);
    EXPECT_EQ(layout.end, packet.size());
    const ChecksumPlace place{static_cast<std::uint16_t>(layout.start), 6};
    EXPECT_EQ(verify_all_ways(completed(packet, place)), Verdict::valid) << c.headers;
  }
}

TEST(ExtensionHeaders, SixteenAreWalkedAndNoMore) {
  for (const int count : {8, 16, 17, 200}) {
    std::string headers;
    for (int i = 1; i < count; ++i) headers += "3c00010400000000";
    headers += "1100010400000000";
    const Layout layout = locate(behind(Protocol::destination_options, headers));
    EXPECT_EQ(layout.kind, count <= 16 ? LayoutKind::covered : LayoutKind::opaque) << count;
  }
}

TEST(ExtensionHeaders, ThatHideThePseudoHeaderAreOpaque) {
  // A routing header with a segment left; a home address option, alone and behind padding.
  EXPECT_EQ(verify_all_ways(behind(Protocol::routing, "1100040100000000")), Verdict::unknown);
  const std::string home = "c910fd770000000000000000000000000009";
  EXPECT_EQ(verify_all_ways(behind(Protocol::destination_options, "1102" + home + "01020000")),
            Verdict::unknown);
  EXPECT_EQ(verify_all_ways(behind(Protocol::destination_options, "110200000000" + home)),
            Verdict::unknown);
  // The same bytes within another option are none.
  Bytes packet = behind(Protocol::destination_options, "11021e14" + home + "0000");
  const ChecksumPlace place{static_cast<std::uint16_t>(locate(packet).start), 6};
  EXPECT_EQ(verify_all_ways(completed(packet, place)), Verdict::valid);
}

TEST(ExtensionHeaders, FragmentsAreLeftAlone) {
  // Offset 0 with more to come, and a later one (RFC 8200, section 4.5).
  for (const char* header : {"1100000112345678", "1100000812345678", "1100000912345678"}) {
    Bytes packet = behind(Protocol::fragment, header);
    EXPECT_EQ(verify_all_ways(packet), Verdict::unknown) << header;
    EXPECT_EQ(complete_all_ways(packet, {48, 6}), Completion::fragment) << header;
  }
}

TEST(ExtensionHeaders, ThatRunPastTheEndAreMalformed) {
  for (const char* header : {"11ff010400000000", "1110010400000000"}) {
    EXPECT_EQ(verify_all_ways(behind(Protocol::hop_by_hop, header)), Verdict::malformed) << header;
  }
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol::hop_by_hop, {})), Verdict::malformed);
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol::fragment, from_hex("11000000000000"))),
            Verdict::malformed);
}

// --- Lies and cuts
// --------------------------------------------------------------------------------

TEST(Malformed, EveryPrefix) {
  const Bytes payload = random_bytes(20, 51);
  for (const Bytes& whole : {completed(ipv4_packet(Protocol::tcp, tcp(payload)), kTcpInIpv4),
                             completed(ipv6_packet(Protocol::tcp, tcp(payload)), kTcpInIpv6),
                             completed(v7_super_packet(), {48, 16})}) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_EQ(verify_all_ways(cut), Verdict::malformed) << n;
      EXPECT_EQ(complete_all_ways(cut, kTcpInIpv4), Completion::malformed) << n;
    }
  }
}

TEST(Malformed, VersionsAndHeaderLengths) {
  for (const unsigned first : {0x05U, 0x55U, 0x75U, 0xf5U, 0x40U, 0x41U, 0x44U, 0x4fU}) {
    Bytes packet = from_hex(kV9);
    packet[0] = static_cast<std::byte>(first);
    EXPECT_EQ(verify_all_ways(packet), Verdict::malformed) << first;
  }
}

TEST(Malformed, TotalLengths) {
  const Bytes good = completed(from_hex(kV3), kUdpInIpv4);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{19}, good.size() - 14, good.size() + 1, std::size_t{65535}}) {
    Bytes packet = good;
    store(std::span(packet), 2, Be16(static_cast<std::uint16_t>(length)));
    EXPECT_EQ(verify_all_ways(packet), Verdict::malformed) << length;
  }
  Bytes v6 = completed(from_hex(kV2), kUdpInIpv6);
  for (const std::uint16_t length : std::initializer_list<std::uint16_t>{0, 7, 9, 11, 65535}) {
    store(std::span(v6), 4, Be16(length));
    EXPECT_EQ(verify_all_ways(v6), Verdict::malformed) << length;
  }
}

TEST(Malformed, UdpLengths) {
  for (const std::uint16_t length : std::initializer_list<std::uint16_t>{0, 1, 7, 14, 65535}) {
    Bytes packet = from_hex(kV3);
    store(std::span(packet), 24, Be16(length));
    EXPECT_EQ(verify_all_ways(packet), Verdict::malformed) << length;
    EXPECT_EQ(complete_all_ways(packet, kUdpInIpv4), Completion::malformed) << length;
  }
}

TEST(Malformed, ShortTransportHeaders) {
  EXPECT_EQ(verify_all_ways(ipv4_packet(Protocol::tcp, Bytes(19))), Verdict::malformed);
  EXPECT_EQ(verify_all_ways(ipv4_packet(Protocol::udp, Bytes(7))), Verdict::malformed);
  EXPECT_EQ(verify_all_ways(ipv4_packet(Protocol::icmp, Bytes(3))), Verdict::malformed);
  EXPECT_EQ(verify_all_ways(ipv6_packet(Protocol::icmpv6, Bytes(3))), Verdict::malformed);
}

}  // namespace
}  // namespace ipoverbs::csum
