#include "verbs/soft/gsi_port.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/verbs/soft/ready_to_use.h"

namespace ipoverbs::verbs::soft {
namespace {

using test::ready_to_use;

const Endpoint kHere{*IpAddress::parse("192.0.2.1"), 50001, 0};
const Endpoint kThere{*IpAddress::parse("192.0.2.2"), 50002, 0};

// Keeps what is sent; brings, one datagram a batch, what the test puts in.
class TestWire : public Wire {
 public:
  void send(const Burst& /*burst*/, TimePoint /*now*/) noexcept override {}
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint /*now*/) noexcept override {
    destinations.push_back(path.remote());
    sent.emplace_back(datagram.begin(), datagram.end());
  }
  [[nodiscard]] std::span<const Received> receive(TimePoint /*now*/) noexcept override {
    if (next == incoming.size()) return {};
    received = {incoming[next++], 0, kThere, 0};
    return {&received, 1};
  }

  std::vector<Endpoint> destinations;
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> incoming;
  std::size_t next = 0;
  Received received;
};

// A datagram as the far end's port sends it to us.
std::vector<std::byte> from_there() {
  TestWire wire;
  GsiPort(wire, kThere).send(kHere.address, ready_to_use(), {});
  return wire.sent.at(0);
}

int taken(GsiPort& port) {
  int count = 0;
  port.receive({}, [&](const IpAddress& source, std::span<const std::byte> mad) {
    EXPECT_EQ(source, kThere.address);
    EXPECT_TRUE(std::ranges::equal(mad, ready_to_use()));
    ++count;
  });
  return count;
}

TEST(GsiPort, SendsToPort4791WithARisingPsn) {
  TestWire wire;
  GsiPort port(wire, kHere);
  port.send(kThere.address, ready_to_use(), {});
  port.send(kThere.address, ready_to_use(), {});
  EXPECT_EQ(wire.destinations.at(1), (Endpoint{kThere.address, kRocePort, 0}));
  EXPECT_EQ(parse(wire.sent.at(0))->bth.psn(), Psn(0));
  EXPECT_EQ(parse(wire.sent.at(1))->bth.psn(), Psn(1));
  EXPECT_EQ(port.counters().sent, 2U);
}

TEST(GsiPort, TakesWhatVerifiesAndCountsWhatDoesNot) {
  TestWire wire;
  GsiPort port(wire, kHere);
  wire.incoming = {from_there()};
  EXPECT_EQ(taken(port), 1);

  std::vector<std::byte> damaged = from_there();
  damaged[100] ^= std::byte{1};
  std::vector<std::byte> to_another_qp = from_there();
  to_another_qp[7] = std::byte{9};
  const std::vector<std::byte> cut(8);
  wire.incoming = {damaged, to_another_qp, cut};
  wire.next = 0;
  EXPECT_EQ(taken(port), 0);
  const auto rejected = [&](Reject why) {
    return port.counters().rejects.at(static_cast<std::size_t>(why));
  };
  EXPECT_EQ(rejected(Reject::BadIcrc), 1U);
  EXPECT_EQ(rejected(Reject::UnknownQp), 1U);
  EXPECT_EQ(rejected(Reject::TooShort), 1U);
  EXPECT_EQ(port.counters().received, 4U);
}

TEST(GsiPort, GivesWayToOthersInAFlood) {
  TestWire wire;
  GsiPort port(wire, kHere);
  wire.incoming.assign(100, from_there());
  int turns = 0;
  int all = 0;
  while (const int now = taken(port)) {
    EXPECT_LE(now, 8);
    all += now;
    ++turns;
  }
  EXPECT_EQ(all, 100);
  EXPECT_GT(turns, 1);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
