// The UDP socket as a wire: what leaves is what comes in, with the ICRC that the kernel's headers
// give, whole or in runs; and port 4791 shared by the sockets of one device.
#include "verbs/soft/udp_wire.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/verbs/soft/own_network.h"
#include "tests/verbs/soft/rc_script.h"
#include "verbs/soft/inbound.h"
#include "verbs/soft/port_group.h"
#include "verbs/soft/qp_numbers.h"

namespace ipoverbs::verbs::soft {
namespace {

const auto* const kNetwork = testing::AddGlobalTestEnvironment(new test::OwnNetwork);

Endpoint underlay(bool v6, unsigned i) {
  return {*IpAddress::parse(fmt::format("{}{}", v6 ? "2001:db8::" : "192.0.2.", i)), 0, 0};
}

// What one wire has received, datagram by datagram, and whether its ICRC is right.
struct Arrived {
  std::vector<std::byte> bytes;
  std::uint16_t segment = 0;
  Endpoint source;
  std::uint8_t traffic_class = 0;
};

class UdpWireTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!test::why_no_network().empty()) GTEST_SKIP() << test::why_no_network();
    ASSERT_NE(kNetwork, nullptr);
    for (unsigned i = 0; i < 2; ++i) {
      group_.at(i).emplace(underlay(GetParam(), i + 1));
      wire_.at(i).emplace(group_.at(i)->socket(0), underlay(GetParam(), i + 1), i);
    }
    path_ = Path(wire_[0]->local(), underlay(GetParam(), 2));
  }

  // Adds a message of `size` bytes, cut by the MTU, to the burst.
  void add(std::uint32_t size, std::uint32_t mtu) {
    const ibv_sge sge{std::bit_cast<std::uint64_t>(data_.data()),
                      static_cast<std::uint32_t>(data_.size()), 0};
    for (std::uint32_t at = 0; at < size || at == 0; at += mtu) {
      Packet packet = script::request(Opcode::SendMiddle, psn_++, {});
      packet.bth.destination = Be24(0x123);
      burst_.add(path_, packet, {&sge, 1}, at, std::min(mtu, size - at));
    }
  }
  void send() {
    for (const Segment& segment : burst_.segments()) {
      expected_.emplace_back(segment.size());
      burst_.write(segment, 0, expected_.back());
    }
    wire_[0]->send(burst_, {});
    burst_.clear();
  }
  // Until `count` datagrams have come to the second wire, or nothing comes any more.
  std::vector<Arrived> receive(std::size_t count) {
    std::vector<Arrived> arrived;
    pollfd ready{group_[1]->socket(0), POLLIN, 0};
    while (arrived.size() < count && ::poll(&ready, 1, 2000) == 1) {
      for (const Received& one : wire_[1]->receive({})) {
        for (std::size_t i = 0; i < one.datagrams(); ++i) {
          const std::span bytes = one.datagram(i);
          arrived.push_back({{bytes.begin(), bytes.end()},
                             static_cast<std::uint16_t>(i),
                             one.source,
                             one.traffic_class});
        }
      }
    }
    return arrived;
  }

  std::array<std::optional<PortGroup>, 2> group_;
  std::array<std::optional<UdpWire>, 2> wire_;
  Path path_;
  Burst burst_;
  std::uint32_t psn_ = 0;
  std::vector<std::byte> data_ = std::vector<std::byte>(65536, std::byte{0x5a});
  std::vector<std::vector<std::byte>> expected_;
};

TEST_P(UdpWireTest, CarriesRunsAndSinglesInOrder) {
  for (const bool segmentation : {true, false}) {
    expected_.clear();
    if (!segmentation) wire_[0]->disable_segmentation();
    add(0, 1024);
    add(5000, 1024);  // a run with a short last one
    add(4097, 4096);
    add(3, 4096);
    add(61440, 4096);
    send();
    const auto arrived = receive(expected_.size());
    ASSERT_EQ(arrived.size(), expected_.size());
    const IcrcFlow flow(wire_[0]->local().address, wire_[0]->local().port,
                        underlay(GetParam(), 2).address, kRocePort);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      const std::span got(arrived[i].bytes);
      const std::span want(expected_[i]);
      ASSERT_EQ(got.size(), want.size());
      // All but the ICRC, which knows the segment's identification.
      EXPECT_TRUE(std::ranges::equal(got.first(got.size() - 4), want.first(want.size() - 4)));
      EXPECT_EQ(arrived[i].source, wire_[0]->local());
      EXPECT_TRUE(icrc_matches(flow, got, arrived[i].segment)) << i;
    }
  }
}

TEST_P(UdpWireTest, AMessageIsOneSystemCallsOneSend) {
  add(61440, 4096);
  send();
  EXPECT_EQ(wire_[0]->counters().sends.value(), 1U);
  EXPECT_EQ(wire_[0]->counters().segments.value(), 15U);
  EXPECT_EQ(receive(15).size(), 15U);
}

TEST_P(UdpWireTest, TellsTheTrafficClass) {
  path_ = Path(wire_[0]->local(), underlay(GetParam(), 2), 0x2a);
  add(1, 1024);
  send();
  const auto arrived = receive(1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].traffic_class, 0x2a);
}

TEST_P(UdpWireTest, SendsToNobodyAreCountedNotFatal) {
  path_ = Path(wire_[0]->local(),
               {*IpAddress::parse(GetParam() ? "2001:db8:ffff::1" : "198.51.100.1"), 0, 0});
  add(5000, 1024);
  add(1, 1024);
  send();
  const UdpCounters& counted = wire_[0]->counters();
  EXPECT_EQ(counted.segments.value(), 0U);
  EXPECT_EQ(counted.unreachable.value(), 6U);
  EXPECT_EQ(counted.refused_runs.value(), 0U);
}

TEST_P(UdpWireTest, TooLongIsCountedAndNotForBeingARun) {
  ASSERT_TRUE(test::set_loopback_mtu(3000));
  for (unsigned i = 0; i < 2 * UdpWire::kRefusals; ++i) {
    add(3 * 4096, 4096);
    send();
  }
  ASSERT_TRUE(test::set_loopback_mtu(65536));
  const UdpCounters& counted = wire_[0]->counters();
  EXPECT_EQ(counted.segments.value(), 0U);
  EXPECT_EQ(counted.too_long.value(), 6U * UdpWire::kRefusals);
  EXPECT_EQ(counted.refused_runs.value(), 2U * UdpWire::kRefusals);
  EXPECT_EQ(counted.segmentation_off.value(), 0U);
  expected_.clear();
  add(3 * 4096, 4096);
  send();
  EXPECT_EQ(counted.sends.value(), 1U);
  EXPECT_EQ(receive(3).size(), 3U);
}

// The descriptor of the socket that sends from `port`.
int socket_of(std::uint16_t port) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    const auto endpoint = Endpoint::from_sockaddr(reinterpret_cast<const sockaddr&>(address));
    if (endpoint && endpoint->port == port) return fd;
  }
  return -1;
}

// Without UDP checksums Linux refuses UDP_SEGMENT, and single datagrams leave.
TEST_P(UdpWireTest, RefusedRunsLeaveSinglyAndForGoodAfterSeveral) {
  const int fd = socket_of(wire_[0]->local().port);
  constexpr int kUdpNoCheck6Tx = 101;  // linux/udp.h
  const auto set_checksums = [&](int off) {
    return GetParam() ? ::setsockopt(fd, IPPROTO_UDP, kUdpNoCheck6Tx, &off, sizeof off)
                      : ::setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &off, sizeof off);
  };
  const UdpCounters& counted = wire_[0]->counters();
  std::size_t sent = 0;
  const auto send_run = [&] {
    add(3 * 1024, 1024);
    send();
    sent += 3;
  };
  for (const bool latches : {false, true}) {
    ASSERT_EQ(set_checksums(1), 0);
    const std::uint64_t before = counted.refused_runs.value();
    for (unsigned i = 0; i + (latches ? 0 : 1) < UdpWire::kRefusals; ++i) send_run();
    EXPECT_EQ(counted.refused_runs.value() - before, UdpWire::kRefusals - (latches ? 0 : 1));
    EXPECT_EQ(counted.segmentation_off.value(), latches ? 1U : 0U);
    ASSERT_EQ(set_checksums(0), 0);
    const std::uint64_t sends = counted.sends.value();
    send_run();
    EXPECT_EQ(counted.sends.value() - sends, latches ? 3U : 1U);
  }
  EXPECT_EQ(counted.segments.value(), sent);
  EXPECT_EQ(receive(sent).size(), sent);
}

TEST_P(UdpWireTest, WithoutCoalescingDatagramsComeSingly) {
  group_[1].reset();
  group_[1].emplace(underlay(GetParam(), 2), false);
  wire_[1].emplace(group_[1]->socket(0), underlay(GetParam(), 2), 1);
  add(5 * 1024, 1024);
  send();
  const auto arrived = receive(5);
  ASSERT_EQ(arrived.size(), 5U);
  for (const Arrived& one : arrived) EXPECT_EQ(one.segment, 0U);
}

TEST_P(UdpWireTest, WhatFindsAFullBufferIsCounted) {
  group_[1].reset();
  group_[1].emplace(underlay(GetParam(), 2), false);
  wire_[1].emplace(group_[1]->socket(0), underlay(GetParam(), 2), 1);
  const std::size_t room = group_[1]->buffer(0);
  std::size_t sent = 0;
  for (std::size_t bytes = 0; bytes < 2 * room; bytes += 15 * 4096) {
    add(15 * 4096, 4096);
    wire_[0]->send(burst_, {});
    burst_.clear();
    sent += 15;
  }
  const std::size_t arrived = receive(sent).size();
  EXPECT_LT(arrived, sent);
  EXPECT_EQ(arrived + group_[1]->overflows(), sent);
}

TEST_P(UdpWireTest, ASecondDeviceOnThePortIsRefused) {
  try {
    const PortGroup second(underlay(GetParam(), 1));
    FAIL() << "the port was shared";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code().value(), EADDRINUSE);
  }
  group_[0].reset();
  EXPECT_NO_THROW(PortGroup(underlay(GetParam(), 1)));
}

TEST_P(UdpWireTest, SteersByQueuePairNumber) {
  PortGroup& group = *group_[1];
  std::vector<int> sockets{group.socket(0)};
  for (unsigned slot = 1; slot <= 3; ++slot) {
    ASSERT_EQ(group.acquire(), slot);
    sockets.push_back(group.socket(slot));
  }
  // A socket given back and taken again keeps its place.
  group.give_back(2);
  EXPECT_EQ(group.acquire(), 2U);
  struct Row {
    std::uint32_t qp;
    std::size_t slot;
  };
  for (const Row& row : {Row{1, 0}, Row{0x41, 1}, Row{0xfff42, 2}, Row{0x800043, 3}, Row{0x44, 0},
                         Row{0x40, 0}, Row{0x42, 2}}) {
    Packet packet = script::request(Opcode::SendOnly, 0, {});
    packet.bth.destination = Be24(row.qp);
    burst_.add(path_, packet, {}, 0, 0);
    wire_[0]->send(burst_, {});
    burst_.clear();
    std::vector<pollfd> ready;
    for (const int fd : sockets) ready.push_back({fd, POLLIN, 0});
    ASSERT_EQ(::poll(ready.data(), ready.size(), 2000), 1);
    std::array<std::byte, 64> bytes;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      EXPECT_EQ(i, row.slot) << row.qp;
      EXPECT_EQ(::recv(ready[i].fd, bytes.data(), bytes.size(), 0), 16);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Family, UdpWireTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "v6" : "v4"; });

TEST(QpNumbers, CarryTheirSlotAndDontComeBackSoon) {
  QpNumbers numbers(0x3fffd);
  std::vector<std::uint32_t> seen;
  for (int i = 0; i < 5; ++i) {
    const QpNumber number = numbers.next(7);
    EXPECT_EQ(slot_of(number), 7U);
    EXPECT_GE(number.value(), kSlots);
    EXPECT_LE(number.value(), 0xffffffU);
    seen.push_back(number.value());
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  EXPECT_EQ(slot_of(kGeneralServicesQp), kControlSlot);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
