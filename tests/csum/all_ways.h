// Completing and verifying in every way that there is, which must agree with each other and with
// the reference.
#pragma once

#include <gtest/gtest.h>

#include "csum/csum.h"
#include "csum/packet.h"
#include "tests/csum/packet_reference.h"
#include "tests/csum/vectors.h"

namespace ipoverbs::csum {

inline constexpr ChecksumPlace kUdpInIpv4{20, 6};
inline constexpr ChecksumPlace kTcpInIpv4{20, 16};
inline constexpr ChecksumPlace kUdpInIpv6{40, 6};
inline constexpr ChecksumPlace kTcpInIpv6{40, 16};

inline Be16 field_of(const Bytes& packet, ChecksumPlace place) {
  return load<Be16>(packet, std::size_t{place.start} + place.offset);
}

// In place and on a copy.
inline Completion complete_all_ways(Bytes& packet, ChecksumPlace place) {
  const Bytes before = packet;
  Bytes plain = packet;
  Bytes copied(packet.size(), std::byte{0x5a});
  const Bytes untouched = copied;
  const Completion result = complete(packet, place);
  EXPECT_EQ(reference::complete(plain, place), result);
  EXPECT_EQ(plain, packet);
  EXPECT_EQ(copy_and_complete(copied, before, place), result);
  EXPECT_EQ(copied, result == Completion::done ? packet : untouched);
  if (result != Completion::done) {
    EXPECT_EQ(packet, before);
  }
  return result;
}

inline Verdict verify_all_ways(const Bytes& packet) {
  const Verdict verdict = verify(packet);
  EXPECT_EQ(reference::verify(packet), verdict);
  const Layout layout = locate(packet);
  Partial covered;
  Bytes copied(packet.size());
  if (layout.kind == LayoutKind::covered) {
    covered = copy(std::span(copied), layout.covered_part(std::span(packet)));
  }
  EXPECT_EQ(verify(packet, layout, covered), verdict);
  return verdict;
}

inline Bytes completed(Bytes packet, ChecksumPlace place) {
  EXPECT_EQ(complete_all_ways(packet, place), Completion::done);
  return packet;
}

inline void flip(Bytes& packet, std::size_t at, unsigned bits = 1) {
  packet[at] ^= static_cast<std::byte>(bits);
}

}  // namespace ipoverbs::csum
