#include "verbs/soft/gsi.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/verbs/soft/ready_to_use.h"

namespace ipoverbs::verbs::soft {
namespace {

using test::ready_to_use;

const IcrcFlow kFlow(*IpAddress::parse("192.0.2.1"), 50000, *IpAddress::parse("192.0.2.2"),
                     kRocePort);

std::array<std::byte, kGsiDatagramSize> datagram() {
  std::array<std::byte, kGsiDatagramSize> out;
  out.fill(std::byte{0xa5});
  emit_gsi(out, ready_to_use(), Psn(5), kFlow, 0);
  return out;
}

TEST(Gsi, CarriesAMadToTheOtherSide) {
  const auto bytes = datagram();
  EXPECT_EQ(icrc_matches(kFlow, bytes, 0), 0);
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bth.psn(), Psn(5));
  const auto mad = mad_of(*packet);
  ASSERT_TRUE(mad);
  EXPECT_TRUE(std::ranges::equal(*mad, ready_to_use()));
}

struct Bad {
  const char* what;
  std::size_t offset;
  unsigned value;
  Reject reject;
};

TEST(Gsi, RefusesOtherPackets) {
  for (const Bad& bad : {
           Bad{"queue pair", 7, 2, Reject::UnknownQp},
           Bad{"partition", 3, 0xfe, Reject::BadPartition},
           Bad{"queue key", 12, 0x81, Reject::BadQueueKey},
           Bad{"opcode", 0, 0x65, Reject::WrongTransport},
           Bad{"reliable opcode", 0, 0x04, Reject::WrongTransport},
       }) {
    auto bytes = datagram();
    bytes[bad.offset] = static_cast<std::byte>(bad.value);
    const auto packet = parse(bytes);
    ASSERT_TRUE(packet) << bad.what;
    const auto mad = mad_of(*packet);
    ASSERT_FALSE(mad) << bad.what;
    EXPECT_EQ(mad.error(), bad.reject) << bad.what;
  }
  auto bytes = datagram();
  bytes[2] = std::byte{0x7f};  // a limited member of the default partition
  EXPECT_TRUE(mad_of(*parse(bytes)));
  EXPECT_EQ(mad_of(*parse(std::span(bytes).first(kGsiDatagramSize - 4))).error(), Reject::TooShort);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
