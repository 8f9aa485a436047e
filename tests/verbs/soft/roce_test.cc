#include "verbs/soft/roce.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/verbs/soft/golden.h"
#include "verbs/soft/icrc.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> datagram(std::string_view hex, std::size_t headers) {
  const auto all = golden::bytes(hex);
  return {all.begin() + static_cast<std::ptrdiff_t>(headers), all.end()};
}

std::vector<std::byte> send_only() { return datagram(golden::kSendOnlyV4, golden::kHeadersV4); }

TEST(Parse, ReadsAnAcknowledge) {
  const auto bytes = datagram(golden::kAckV4, golden::kHeadersV4);
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->opcode(), Opcode::Acknowledge);
  EXPECT_EQ(packet->bth.qp(), QpNumber(0x11));
  EXPECT_EQ(packet->bth.psn(), Psn(0xff1fa4));
  EXPECT_EQ(packet->bth.partition.value(), kDefaultPartition);
  EXPECT_FALSE(packet->bth.wants_ack());
  EXPECT_EQ(packet->aeth.syndrome, kAckWithoutCredits);
  EXPECT_EQ(packet->aeth.msn.value(), 1U);
  EXPECT_TRUE(packet->payload.empty());
}

TEST(Parse, ReadsASend) {
  const auto bytes = send_only();
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->opcode(), Opcode::SendOnly);
  EXPECT_TRUE(packet->bth.wants_ack());
  EXPECT_FALSE(packet->bth.solicited());
  EXPECT_EQ(packet->payload.size(), 16U);
  EXPECT_EQ(packet->payload.data(), bytes.data() + sizeof(Bth));
}

// Each row: what one byte is set to, or to what size the datagram is cut, and what comes of it.
TEST(Parse, RefusesWhatIsMalformed) {
  struct Row {
    const char* name;
    std::size_t size;
    std::size_t at;
    std::uint8_t value;
    Reject reject;
  };
  for (const Row& row :
       {Row{"empty", 0, 0, 0, Reject::TooShort},
        Row{"a byte less than BTH and ICRC", 15, 0, 0x04, Reject::TooShort},
        Row{"AETH cut off", 16, 0, 0x11, Reject::TooShort},
        Row{"DETH cut off", 20, 0, 0x64, Reject::TooShort},
        Row{"version 1", 32, 1, 0x01, Reject::BadVersion},
        Row{"reserved opcode", 32, 0, 0x15, Reject::BadOpcode},
        Row{"UC", 32, 0, 0x24, Reject::BadOpcode}, Row{"odd length", 31, 0, 0x04, Reject::BadPad},
        Row{"pad without payload", 16, 1, 0x30, Reject::BadPad}}) {
    auto bytes = send_only();
    bytes.at(row.at) = static_cast<std::byte>(row.value);
    bytes.resize(row.size);
    const auto packet = parse(bytes);
    ASSERT_FALSE(packet) << row.name;
    EXPECT_EQ(packet.error(), row.reject) << row.name << ": " << to_string(packet.error());
  }
  EXPECT_EQ(parse(std::vector<std::byte>(kMaxDatagram + 4)).error(), Reject::TooLong);
}

TEST(Parse, TakesThePadOff) {
  auto bytes = send_only();
  bytes[1] = std::byte{0x30};
  EXPECT_EQ(parse(bytes)->payload.size(), 13U);
}

TEST(Emit, WritesTheGoldenPackets) {
  struct Row {
    std::string_view hex;
    std::size_t headers;
    std::uint16_t ip_id, port;
  };
  for (const Row& row : {Row{golden::kAckV4, golden::kHeadersV4, 0x1814, 0xf39d},
                         Row{golden::kSendOnlyV4, golden::kHeadersV4, 0x3e4c, 0xf39d},
                         Row{golden::kAckV6, golden::kHeadersV6, 0, 0xf903}}) {
    const auto whole = golden::bytes(row.hex);
    const std::span ip(whole);
    const bool v4 = row.headers == golden::kHeadersV4;
    const IcrcFlow flow(IpAddress::from_bytes(v4 ? ip.subspan(12, 4) : ip.subspan(8, 16)), row.port,
                        IpAddress::from_bytes(v4 ? ip.subspan(16, 4) : ip.subspan(24, 16)),
                        kRocePort);
    const auto wire = datagram(row.hex, row.headers);
    const auto packet = parse(wire);
    ASSERT_TRUE(packet);
    std::vector<std::byte> out(wire.size() + 1, std::byte{0xa5});
    ASSERT_EQ(emit(out, *packet, flow, row.ip_id), wire.size());
    EXPECT_TRUE(std::ranges::equal(std::span(out).first(wire.size()), wire));
    EXPECT_EQ(out.back(), std::byte{0xa5});
    EXPECT_EQ(emit(std::span(out).first(wire.size() - 1), *packet, flow, row.ip_id), 0U);
  }
}

TEST(Emit, SurvivesParsingForEveryOpcodeAndPad) {
  const IcrcFlow flow(*IpAddress::parse("192.0.2.1"), 0xc001, *IpAddress::parse("192.0.2.2"),
                      kRocePort);
  const std::vector<std::byte> payload(11, std::byte{0x5a});
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if (!layout_of(static_cast<std::uint8_t>(opcode)).known) continue;
    for (std::size_t size = 0; size <= payload.size(); ++size) {
      Packet packet;
      packet.bth = {static_cast<std::uint8_t>(opcode),
                    Bth::kSolicited,
                    Be16(0xffff),
                    0,
                    Be24(0x123456),
                    Bth::kAckRequest,
                    Be24(0xabcdef)};
      packet.deth = {Be32(kQp1Key), 0, Be24(7)};
      packet.reth = {Be64(1), Be32(2), Be32(3)};
      packet.aeth = {0x61, Be24(9)};
      packet.immediate.fill(std::byte{0x77});
      packet.payload = std::span(payload).first(size);
      std::vector<std::byte> out(kMaxDatagram, std::byte{0xa5});
      out.resize(emit(out, packet, flow, 0));
      const auto back = parse(out);
      ASSERT_TRUE(back) << opcode << ' ' << size;
      const Layout layout = layout_of(static_cast<std::uint8_t>(opcode));
      EXPECT_TRUE(std::ranges::equal(back->payload, packet.payload));
      EXPECT_EQ(back->bth.psn(), Psn(0xabcdef));
      EXPECT_EQ(back->bth.qp(), QpNumber(0x123456));
      EXPECT_EQ(back->deth.queue_key.value(), layout.deth ? kQp1Key : 0);
      EXPECT_EQ(back->reth.length.value(), layout.reth ? 3U : 0U);
      EXPECT_EQ(back->aeth.syndrome, layout.aeth ? 0x61 : 0);
      EXPECT_EQ(back->immediate[3], layout.immediate ? std::byte{0x77} : std::byte{0});
      EXPECT_TRUE(icrc_matches(flow, out, 0));
    }
  }
}

TEST(Syndrome, SaysWhatItIs) {
  EXPECT_EQ(ack_kind(kAckWithoutCredits), AckKind::Ack);
  EXPECT_EQ(ack_kind(0x2c), AckKind::RnrNak);
  EXPECT_EQ(ack_kind(0x40), AckKind::Reserved);
  EXPECT_EQ(ack_kind(0x60), AckKind::Nak);
  EXPECT_EQ(rnr_syndrome(12), 0x2c);
  EXPECT_EQ(nak_syndrome(NakCode::RemoteOperational), 0x63);
  EXPECT_EQ(nak_code(0x61), NakCode::InvalidRequest);
  EXPECT_FALSE(nak_code(0x64));
  EXPECT_FALSE(nak_code(0x1f));
}

TEST(Timers, FollowTheTables) {
  EXPECT_EQ(rnr_wait(0), 655360us);
  EXPECT_EQ(rnr_wait(1), 10us);
  EXPECT_EQ(rnr_wait(12), 640us);
  EXPECT_EQ(rnr_wait(18), 5120us);
  EXPECT_EQ(rnr_wait(31), 491520us);
  EXPECT_FALSE(ack_timeout(0));
  EXPECT_EQ(ack_timeout(1), 8192ns);
  EXPECT_EQ(ack_timeout(14), 67108864ns);
}

TEST(Names, AreThere) {
  EXPECT_STREQ(to_string(Reject::BadIcrc), "bad_icrc");
  EXPECT_STREQ(to_string(Opcode::SendLastImm), "SEND last with immediate");
  EXPECT_STREQ(to_string(static_cast<Opcode>(0x15)), "reserved opcode");
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
