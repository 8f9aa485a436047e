#include "transport/hello.h"

#include <functional>

#include <gtest/gtest.h>

#include "core/byte_order.h"

namespace ipoverbs::transport {
namespace {

Hello good() {
  Hello h;
  h.session_index = 3;
  h.workers = 4;
  h.node_id = NodeId(0x0102030405060708);
  h.attempt = 0x11121314;
  h.capabilities = 0x1f;
  h.max_message = 65552;
  h.mtu = IpMtu(65520);
  h.credits = 8;
  h.port = 0x1294;
  return h;
}

TEST(Hello, IsWrittenByteForByte) {
  const auto bytes = emit(good());
  const std::array<unsigned, 56> wanted{
      'I',  'P',  'o', 'V', 1, 56,   3, 4, 1, 2,  3, 4, 5,    6,    7, 8, 0x11, 0x12,
      0x13, 0x14, 0,   0,   0, 0x1f, 0, 1, 0, 16, 0, 0, 0xff, 0xf0, 0, 8, 0x12, 0x94};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), wanted[i]) << i;
  }
}

TEST(Hello, SurvivesTheWireAndItsPadding) {
  std::array<std::byte, 196> padded{};
  std::ranges::copy(emit(good()), padded.begin());
  EXPECT_EQ(parse_hello(padded), good());
  EXPECT_EQ(parse_hello(emit(good())), good());
}

TEST(Hello, WithoutAPortIsOfTheDefaultPort) {
  auto bytes = emit(good());
  bytes[34] = bytes[35] = std::byte{0};
  Hello wanted = good();
  wanted.port = 4755;
  EXPECT_EQ(parse_hello(bytes), wanted);
}

TEST(Hello, IsRefusedForEachFieldOutOfRange) {
  const std::vector<std::function<void(Hello&)>> faults{
      [](Hello& h) { h.workers = 0; },        [](Hello& h) { h.workers = 65; },
      [](Hello& h) { h.session_index = 64; }, [](Hello& h) { h.mtu = IpMtu(67); },
      [](Hello& h) { h.mtu = IpMtu(0); },     [](Hello& h) { h.mtu = IpMtu(65536); },
      [](Hello& h) { h.mtu = IpMtu(70000); }, [](Hello& h) { h.max_message = 83; },
      [](Hello& h) { h.credits = 0; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Hello h = good();
    faults[i](h);
    EXPECT_EQ(parse_hello(emit(h)), std::unexpected(RejectReason::BadHello)) << i;
  }
}

TEST(Hello, IsRefusedWithAnotherMagicLengthOrSize) {
  for (const std::size_t at : {0UZ, 3UZ, 5UZ}) {
    auto bytes = emit(good());
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(parse_hello(bytes), std::unexpected(RejectReason::BadHello)) << at;
  }
  const auto bytes = emit(good());
  for (std::size_t size = 0; size < kHelloSize; ++size) {
    EXPECT_FALSE(parse_hello(std::span(bytes).first(size)));
  }
}

TEST(Hello, OfAnotherVersionIsRefusedAsSuch) {
  auto bytes = emit(good());
  bytes[4] = std::byte{2};
  EXPECT_EQ(parse_hello(bytes), std::unexpected(RejectReason::Version));
}

TEST(Reject, SurvivesTheWire) {
  for (std::uint8_t r = 1; r <= 7; ++r) {
    const auto reason = static_cast<RejectReason>(r);
    EXPECT_EQ(parse_reject(emit_reject(reason)), reason);
    EXPECT_FALSE(describe_reject(emit_reject(reason)).empty());
  }
}

TEST(Reject, TellsThePeersVersion) {
  auto bytes = emit_reject(RejectReason::Version);
  bytes[4] = std::byte{9};
  EXPECT_EQ(describe_reject(bytes), "the peer speaks version 9 of the wire format, we speak 1");
}

TEST(Reject, OfSomebodyElseIsNotOurs) {
  const std::array<std::byte, 148> zeros{};
  EXPECT_FALSE(parse_reject(zeros));
  EXPECT_FALSE(parse_reject(std::span(zeros).first(3)));
  auto unknown = emit_reject(RejectReason::Busy);
  unknown[5] = std::byte{8};
  EXPECT_FALSE(parse_reject(unknown));
}

}  // namespace
}  // namespace ipoverbs::transport
