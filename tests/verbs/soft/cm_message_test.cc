#include "verbs/soft/cm_message.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "verbs/soft/cma_header.h"

namespace ipoverbs::verbs::soft {
namespace {

// A MAD of each kind, all its described bits random, the reserved ones zero.
Mad random_mad(const CmBody& kind, std::mt19937_64& random) {
  Mad mad = described_bits(kind);
  for (auto& b : mad) b &= static_cast<std::byte>(random());
  const Mad head = emit_cm({TransactionId(random()), kind});
  std::ranges::copy(std::span(head).first(kMadHeaderSize), mad.begin());
  return mad;
}

const std::array<CmBody, 7> kEveryKind{ConnectRequestMessage{}, ReceiptAckMessage{},
                                       RejectMessage{},         ConnectReplyMessage{},
                                       ReadyToUseMessage{},     DisconnectRequestMessage{},
                                       DisconnectReplyMessage{}};

TEST(CmMessage, EveryKindIsEmittedAsItWasParsed) {
  std::mt19937_64 random(2);  // fixed seed
  for (const CmBody& kind : kEveryKind) {
    for (int i = 0; i < 100; ++i) {
      const Mad mad = random_mad(kind, random);
      const auto message = parse_cm(mad);
      ASSERT_TRUE(message) << name_of(kind);
      EXPECT_EQ(message->body.index(), kind.index());
      EXPECT_EQ(emit_cm(*message), mad) << name_of(kind);
    }
  }
}

TEST(CmMessage, ReservedBitsAreIgnoredAndEmittedAsZero) {
  for (const CmBody& kind : kEveryKind) {
    const Mad described = described_bits(kind);
    Mad mad = emit_cm({TransactionId(7), kind});
    const Mad clean = mad;
    for (std::size_t i = 0; i < mad.size(); ++i) mad[i] |= ~described[i];
    const auto message = parse_cm(mad);
    ASSERT_TRUE(message) << name_of(kind);
    EXPECT_EQ(emit_cm(*message), clean) << name_of(kind);
  }
}

// How many bits the specification leaves unnamed in each message's 232 bytes.
TEST(CmMessage, LeavesNothingButReservedBitsOut) {
  const auto reserved = [](const CmBody& kind) {
    const Mad described = described_bits(kind);
    int bits = 0;
    for (const std::byte b : std::span(described).subspan(kMadHeaderSize)) {
      bits += 8 - std::popcount(std::to_integer<unsigned>(b));
    }
    return bits;
  };
  // 4..7, 24..27; in each path 6 after the flow label and 3 + 3 beside SL and ACK timeout.
  EXPECT_EQ(reserved(ConnectRequestMessage{}), 32 + 32 + 2 * (6 + 3 + 3));
  EXPECT_EQ(reserved(ReceiptAckMessage{}), 6 + 3);
  EXPECT_EQ(reserved(RejectMessage{}), 6 + 1);
  EXPECT_EQ(reserved(ConnectReplyMessage{}), 8 + 8 + 8 + 4);
  EXPECT_EQ(reserved(ReadyToUseMessage{}), 0);
  EXPECT_EQ(reserved(DisconnectRequestMessage{}), 8);
  EXPECT_EQ(reserved(DisconnectReplyMessage{}), 0);
}

TEST(CmMessage, PutsFieldsWhereTheSpecificationHasThem) {
  ConnectRequestMessage req;
  req.local_comm_id = CommId(0x01020304);
  req.service_id = service_of_port(7471);
  req.local_qpn = QpNumber(0x0a0b0c);
  req.starting_psn = Psn(0x0d0e0f);
  req.path_mtu = 5;
  req.retry_count = 6;
  req.srq = true;
  const Mad mad = emit_cm({TransactionId(0x1122334455667788), req});
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(mad[i]); };
  EXPECT_EQ(at(0), 1U);
  EXPECT_EQ(at(1), 7U);
  EXPECT_EQ(at(2), 2U);
  EXPECT_EQ(at(3), 3U);
  EXPECT_EQ(at(8), 0x11U);
  EXPECT_EQ(at(17), 0x10U);
  EXPECT_EQ(at(24), 1U);
  EXPECT_EQ(at(24 + 8 + 5), 0x06U);
  EXPECT_EQ(at(24 + 8 + 6), 0x1dU);
  EXPECT_EQ(at(24 + 8 + 7), 0x2fU);
  EXPECT_EQ(at(24 + 34), 0x0cU);
  EXPECT_EQ(at(24 + 44), 0x0dU);
  EXPECT_EQ(at(24 + 47), 6U);
  EXPECT_EQ(at(24 + 50), 0x50U);
  EXPECT_EQ(at(24 + 51), 0x08U);
}

struct BadMad {
  const char* what;
  std::size_t offset;
  unsigned value;
  CmParseError error;
};

TEST(CmMessage, RefusesWhatIsNoMessageOfItsOwn) {
  for (const BadMad& bad : {
           BadMad{"base version", 0, 2, CmParseError::OtherClass},
           BadMad{"class", 1, 0x03, CmParseError::OtherClass},
           BadMad{"class version", 2, 1, CmParseError::BadClassVersion},
           BadMad{"method", 3, 0x81, CmParseError::OtherClass},
           BadMad{"SIDR_REQ", 17, 0x17, CmParseError::UnsupportedAttribute},
           BadMad{"APR", 17, 0x1a, CmParseError::UnsupportedAttribute},
           BadMad{"attribute 0x0f", 17, 0x0f, CmParseError::UnknownAttribute},
           BadMad{"attribute 0x1b", 17, 0x1b, CmParseError::UnknownAttribute},
           BadMad{"attribute 0x110", 16, 1, CmParseError::UnknownAttribute},
       }) {
    Mad mad = emit_cm({TransactionId(1), ReadyToUseMessage{}});
    mad[bad.offset] = static_cast<std::byte>(bad.value);
    const auto message = parse_cm(mad);
    ASSERT_FALSE(message) << bad.what;
    EXPECT_EQ(message.error(), bad.error) << bad.what;
  }
  const Mad mad = emit_cm({TransactionId(1), ReadyToUseMessage{}});
  EXPECT_EQ(parse_cm(std::span(mad).first(255)).error(), CmParseError::BadSize);
  EXPECT_EQ(parse_cm({}).error(), CmParseError::BadSize);
}

TEST(CmaHeader, RoundTripsBothFamilies) {
  for (const auto& [from, to] :
       {std::pair{"192.0.2.1", "192.0.2.2"}, std::pair{"2001:db8::1", "2001:db8::2"}}) {
    const CmaHeader header{40000, *IpAddress::parse(from), *IpAddress::parse(to)};
    std::array<std::byte, kCmaHeaderSize> bytes;
    bytes.fill(std::byte{0xa5});
    emit_cma_header(header, bytes);
    EXPECT_EQ(parse_cma_header(bytes), header);
  }
}

TEST(CmaHeader, PutsIpv4AtTheEndBehindZeros) {
  std::array<std::byte, kCmaHeaderSize> bytes;
  bytes.fill(std::byte{0xa5});
  emit_cma_header({1, *IpAddress::parse("192.0.2.1"), *IpAddress::parse("192.0.2.2")}, bytes);
  EXPECT_EQ(bytes[1], std::byte{0x40});
  EXPECT_TRUE(std::ranges::all_of(std::span(bytes).subspan(4, 12),
                                  [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(bytes[16], std::byte{192});
  EXPECT_EQ(bytes[35], std::byte{2});
}

TEST(CmaHeader, RefusesOtherVersions) {
  std::array<std::byte, kCmaHeaderSize> good{};
  emit_cma_header({1, *IpAddress::parse("192.0.2.1"), *IpAddress::parse("192.0.2.2")}, good);
  for (const auto& [offset, value] : {std::pair{0, 0x10}, std::pair{1, 0x50}, std::pair{1, 0}}) {
    auto bad = good;
    bad.at(static_cast<std::size_t>(offset)) = static_cast<std::byte>(value);
    EXPECT_FALSE(parse_cma_header(bad)) << offset;
  }
}

TEST(Gid, IsTheAddress) {
  const IpAddress v4 = *IpAddress::parse("192.0.2.1");
  const IpAddress v6 = *IpAddress::parse("2001:db8::1");
  EXPECT_EQ(address_of(gid_of(v4)), v4);
  EXPECT_EQ(address_of(gid_of(v6)), v6);
  EXPECT_EQ(gid_of(v4).bytes[10], std::byte{0xff});
  EXPECT_EQ(gid_of(v4).bytes[9], std::byte{0});
}

TEST(Codes, ArePathMtusAndTimeouts) {
  EXPECT_EQ(path_mtu_of_code(1), PathMtu(256));
  EXPECT_EQ(path_mtu_of_code(5), PathMtu(4096));
  EXPECT_FALSE(path_mtu_of_code(0));
  EXPECT_FALSE(path_mtu_of_code(6));
  EXPECT_EQ(timeout_of_code(14), std::chrono::nanoseconds(67108864));
  EXPECT_EQ(port_of_service(service_of_port(4755)), 4755);
  EXPECT_FALSE(port_of_service(ServiceId(0x0000000001111234)));
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
