// One node against a peer that the test plays by hand: what it sends, byte for byte, and what comes
// in.
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/fake_tun.h"
#include "tests/support/loopback_rig.h"
#include "transport/counters.h"
#include "transport/credits.h"
#include "transport/frame.h"
#include "transport/hello.h"
#include "transport/node.h"

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using support::address;
using support::Bytes;
using support::ip_packet;
using support::to_bytes;

constexpr NodeId kNode(5);
constexpr NodeId kPeer(9);

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// A frame around a record (virtio header and packet) as a TUN gives it.
Bytes frame_of(const Bytes& record, std::uint8_t flags = 0) {
  const std::size_t length = record.size() - sizeof(tun::VirtioNetHeader);
  Bytes frame(frame_size(length));
  std::ranges::copy(record, frame.begin() + kTunOffset);
  finish_packet_frame(frame, length);
  set_flags(frame, flags);
  return frame;
}

// The node is 10.77.0.2 at 192.0.2.1, so that packets from the peer 10.77.0.1 at 192.0.2.2 go to
// it: the direction of the byte vectors below.
class RawPeer : public testing::Test {
 protected:
  void start(const support::LoopbackOptions& device = {}) {
    options.own = {*Prefix::parse("10.77.0.2"), *Prefix::parse("fd77::2")};
    options.capabilities = 0x1f;
    options.receive_buffers = 8;
    options.slabs = 4;
    PeerOptions p;
    p.name = "raw";
    p.underlay.endpoint = {support::kB, options.port, 0};
    p.prefixes = {*Prefix::parse("10.77.0.1"), *Prefix::parse("fd77::1")};
    options.peers.insert(options.peers.begin(), p);
    const std::array queues{tun.queue()};
    node = std::make_unique<Node>(
        options, queues, [this, device] { return network.open(support::kA, device); },
        kNode.value(), *log, now);
  }
  bool run_until(const std::function<bool()>& done, int turns = 20000) {
    for (int i = 0; i < turns; ++i) {
      node->process(now);
      raw.process();
      if (done()) return true;
      now += 1ms;
      support::wait_for_any({node->event_fd(), raw.device->event_fd()});
    }
    return false;
  }
  std::uint64_t counter(Counter counter) {
    for (const CounterValue& c : node->status(now).counters) {
      if (c.name == to_string(counter)) return c.value;
    }
    return ~std::uint64_t{0};
  }
  PeerStatus peer() { return node->status(now).peers.front(); }
  bool ready() { return peer().sessions[0].send_credits > 0; }
  static Hello hello() {
    Hello h;
    h.node_id = kPeer;
    h.workers = 1;
    h.capabilities = 0x1f;
    h.max_message = kMaxMessage;
    h.mtu = IpMtu(65520);
    h.credits = 8;
    return h;
  }
  // Of a peer whose dialling is kept where it crosses the node's.
  static Hello winning_hello() {
    Hello h = hello();
    h.node_id = NodeId(1);
    h.attempt = 1;
    return h;
  }
  // The node dials, the peer accepts with `answer`.
  bool accept(std::span<const std::byte> answer) {
    raw.device->listen(options.port);
    if (!run_until([&] { return raw.connection != nullptr; })) return false;
    raw.create_queue_pair();
    for (std::size_t i = 32; i < 48; ++i) raw.receive(i);
    raw.connection->accept(answer);
    return true;
  }
  // The peer dials with `request`.
  void dial(const Hello& request) {
    raw.dial(support::kA);
    raw.process();
    raw.create_queue_pair();
    for (std::size_t i = 48; i < 64; ++i) raw.receive(i);
    raw.connection->connect(emit(request));
  }
  bool connect() {
    return accept(emit(hello())) && run_until([&] { return ready(); });
  }
  void send(const Bytes& message) {
    ASSERT_LE(message.size(), support::Host::kSlot);
    std::ranges::copy(message, raw.slot(0).begin());
    ASSERT_EQ(raw.send(0, std::vector{raw.sge(0, message.size())}), 0);
    raw.poll();
  }
  // Sends Control messages as fast as the node takes them, `most` at most, until `done`.
  bool flood(std::uint32_t most, const std::function<bool()>& done) {
    write_control_frame(raw.slot(0), 0);
    const std::vector control{raw.sge(0, kFrameHeader)};
    std::uint32_t sent = 0;
    return run_until([&] {
      raw.poll();
      while (sent < most && raw.send(0, control, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED) == 0) {
        ++sent;
      }
      return done();
    });
  }
  // Sends `message` and waits for what counts it.
  testing::AssertionResult counts(const Bytes& message, Counter name) {
    const std::uint64_t before = counter(name);
    send(message);
    if (run_until([&] { return counter(name) == before + 1; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(name) << " stays at " << counter(name);
  }

  support::LoopbackNetwork network;
  support::Host raw{network, support::kB};
  support::FakeTun tun;
  Options options;
  TimePoint now = monotonic_now();
  std::shared_ptr<Logger> log = make_null_logger();
  std::unique_ptr<Node> node;
};

const Bytes kGood = support::with_header(ip_packet("10.77.0.1", "10.77.0.2", to_bytes("hi")));

TEST_F(RawPeer, MalformedMessagesAreCountedAndTheSessionStands) {
  start();
  ASSERT_TRUE(connect());
  Bytes cut = frame_of(kGood);
  const Bytes second = frame_of(kGood);
  cut.insert(cut.end(), second.begin(), second.end() - 8);
  Bytes longer = frame_of(kGood);
  store(std::span(longer), 0, Be16(0xffff));
  Bytes strange = frame_of(kGood);
  store(std::span(strange), 4, std::uint8_t{7});
  for (const Bytes& message : {Bytes(1), Bytes(15), Bytes(16), longer, strange, cut}) {
    EXPECT_TRUE(counts(message, Counter::RxDropMalformedFrame)) << message.size();
  }
  EXPECT_TRUE(counts({}, Counter::PeerRxMessages));
  EXPECT_TRUE(counts(frame_of(kGood), Counter::TunTxPackets));
  EXPECT_EQ(peer().state, "connected");
  // The first frame of `cut` was whole.
  EXPECT_TRUE(run_until([&] { return counter(Counter::TunTxPackets) == 2; }));
}

TEST_F(RawPeer, MalformedPacketsAreCountedAndTheSessionStands) {
  start();
  ASSERT_TRUE(connect());
  Bytes wrong_length = kGood;
  store(std::span(wrong_length), 12, Be16(21));
  Bytes wrong_version = kGood;
  store(std::span(wrong_version), 10, std::uint8_t{0x55});
  EXPECT_TRUE(counts(frame_of(wrong_length), Counter::RxDropMalformedPacket));
  EXPECT_TRUE(counts(frame_of(wrong_version), Counter::RxDropMalformedPacket));
  EXPECT_TRUE(counts(frame_of(kGood), Counter::TunTxPackets));
}

// Each of these headers asks for something that its packet, 28 bytes of UDP over IPv4, does not
// have.
TEST_F(RawPeer, VirtioHeadersThatDoNotFitAreCounted) {
  start();
  ASSERT_TRUE(connect());
  for (const char* header : {"0100000000001c000600", "01000000000014000700", "01000000000000000600",
                             "01012800000014001000", "01013c00640014001000", "007f0000640000000000",
                             "01011c00640014001000", "00012800640014001000"}) {
    Bytes record = from_hex(header);
    const Bytes packet = from_hex("4500001c00014000401126340a4d00010a4d00029c40000900080000");
    record.insert(record.end(), packet.begin(), packet.end());
    EXPECT_TRUE(counts(frame_of(record), Counter::RxDropOffload)) << header;
  }
  EXPECT_FALSE(tun.receive());
}

TEST_F(RawPeer, AHelloOfAnotherVersionEndsTheAttemptWithWords) {
  start();
  auto other = emit(hello());
  other[4] = std::byte{2};
  ASSERT_TRUE(accept(other));
  ASSERT_TRUE(run_until([&] { return !peer().sessions[0].last_error.empty(); }));
  EXPECT_NE(peer().sessions[0].last_error.find("version"), std::string::npos);
  EXPECT_NE(peer().state, "connected");
}

TEST_F(RawPeer, ARefusalIsToldInWords) {
  start();
  raw.device->listen(options.port);
  ASSERT_TRUE(run_until([&] { return raw.connection != nullptr; }));
  raw.connection->reject(emit_reject(RejectReason::UnknownPeer));
  ASSERT_TRUE(run_until([&] { return !peer().sessions[0].last_error.empty(); }));
  EXPECT_EQ(peer().sessions[0].last_error,
            "the peer has no peer configured with our underlay address");
}

TEST_F(RawPeer, ARequestWithoutAHelloIsRefused) {
  start();
  raw.dial(support::kA);
  ASSERT_EQ(raw.process(), std::vector<std::string>{"route resolved"});
  raw.create_queue_pair();
  raw.connection->connect(to_bytes("something else"));
  bool refused = false;
  ASSERT_TRUE(run_until([&] {
    for (const std::string& event : raw.events) refused = refused || event.starts_with("rejected");
    return refused;
  }));
  EXPECT_EQ(parse_reject(raw.data), RejectReason::BadHello);
}

TEST_F(RawPeer, OfTwoPeersBehindOneAddressThePortTellsWhichDials) {
  PeerOptions second;
  second.name = "second";
  second.underlay.endpoint = {support::kB, 4756, 0};
  second.prefixes = {*Prefix::parse("10.77.0.3")};
  options.peers = {second};
  start();
  ASSERT_TRUE(connect());
  const auto first = std::move(raw.connection);
  Hello request = winning_hello();
  request.port = 4756;
  dial(request);
  const auto state = [&](std::size_t i) { return node->status(now).peers.at(i).state; };
  EXPECT_TRUE(run_until([&] { return state(1) == "connected"; }));
  EXPECT_EQ(state(0), "connected");
  EXPECT_EQ(peer().sessions[0].established_count, 1U);
  // A third one is neither.
  const auto kept = std::move(raw.connection);
  request.port = 4757;
  dial(request);
  ASSERT_TRUE(run_until([&] { return parse_reject(raw.data).has_value(); }));
  EXPECT_EQ(parse_reject(raw.data), RejectReason::UnknownPeer);
}

TEST_F(RawPeer, APeerAloneAtItsAddressIsKnownWhateverItsPort) {
  start();
  Hello request = winning_hello();
  request.port = 4756;
  dial(request);
  EXPECT_TRUE(run_until([&] { return ready(); }));
}

// A UDP datagram whose checksum is computed as zero, partial and complete: the complete one is
// 0xffff.
constexpr const char* kPartial =
    "010000000000140006004500001e00014000401126320a4d00010a4d00029c400009000a14b84ef4";
constexpr const char* kComplete =
    "01001c000000140006004500001e00014000401126320a4d00010a4d00029c400009000affff4ef4";

TEST_F(RawPeer, AVerifiedChecksumBecomesPartialAgain) {
  start();
  ASSERT_TRUE(connect());
  EXPECT_TRUE(counts(frame_of(from_hex(kComplete), kChecksumComplete), Counter::TunTxPackets));
  const auto record = tun.receive_record();
  ASSERT_TRUE(record);
  Bytes wanted = from_hex(kPartial);
  store(std::span(wanted), 2, Le16(28));  // hdr_len is set anew
  EXPECT_EQ(*record, wanted);
}

TEST_F(RawPeer, AWrongChecksumIsDroppedAndCounted) {
  start();
  ASSERT_TRUE(connect());
  for (const std::size_t at : {30UZ, 36UZ, 39UZ}) {  // a port, the field, the payload
    Bytes record = from_hex(kComplete);
    record[at] ^= std::byte{1};
    EXPECT_TRUE(counts(frame_of(record, kChecksumComplete), Counter::RxDropChecksum)) << at;
  }
  EXPECT_FALSE(tun.receive());
}

TEST_F(RawPeer, WithChecksumAutoAPartialOneCrossesAsItIs) {
  options.checksum = Checksum::Auto;
  start();
  ASSERT_TRUE(connect());
  EXPECT_TRUE(counts(frame_of(from_hex(kPartial)), Counter::TunTxPackets));
  Bytes wanted = from_hex(kPartial);
  store(std::span(wanted), 2, Le16(28));
  EXPECT_EQ(tun.receive_record(), wanted);
}

// Gathered where it lies, copied and summed in one pass, or in two: the same bytes leave.
struct Copying {
  const char* name;
  std::uint32_t copy_break;  // the packet has 30 bytes
  Checksum checksum = Checksum::Full;
};
class RawPeerSends : public RawPeer, public testing::WithParamInterface<Copying> {};

TEST_P(RawPeerSends, PartialChecksumComplete) {
  options.checksum = GetParam().checksum;
  options.copy_break = GetParam().copy_break;
  start();
  ASSERT_TRUE(connect());
  // From the node to the peer: addresses and ports change places, which no sum notices.
  Bytes record = from_hex(kPartial);
  const Bytes swapped = from_hex("0a4d00020a4d0001");
  std::ranges::copy(swapped, record.begin() + 22);
  const auto header = load<tun::VirtioNetHeader>(std::span<const std::byte>(record));
  tun.send(Bytes(record.begin() + 10, record.end()), header);
  std::vector<std::string> lines;
  ASSERT_TRUE(run_until([&] {
    for (const std::string& line : raw.poll()) {
      if (line.ends_with("of 48 bytes")) lines.push_back(line);
    }
    return !lines.empty();
  }));
  const auto slot = static_cast<std::size_t>(std::stoi(lines[0].substr(8)));
  const std::span<const std::byte> frame = raw.slot(slot);
  EXPECT_EQ(load<std::uint8_t>(frame, 5), kChecksumComplete);
  EXPECT_EQ(load<Be16>(frame, 16 + 26).value(), 0xffff);
}

INSTANTIATE_TEST_SUITE_P(Copies, RawPeerSends,
                         testing::Values(Copying{"gathered", 0}, Copying{"gatheredJustAbove", 29},
                                         Copying{"fused", 30},
                                         Copying{"separate", 30, Checksum::FullSeparate}),
                         [](const auto& p) { return p.param.name; });

// They need no credit, but a receive each, which other sessions have been promised.
TEST_F(RawPeer, AFloodOfControlMessagesEndsTheSession) {
  start();
  ASSERT_TRUE(connect());
  EXPECT_TRUE(flood(10000, [&] { return !peer().sessions[0].last_error.empty(); }));
  EXPECT_EQ(peer().sessions[0].last_error, "the peer floods Control messages");
}

TEST_F(RawPeer, AFewHundredControlMessagesAtOnceAreTaken) {
  start();
  ASSERT_TRUE(connect());
  const auto all = [&] { return counter(Counter::PeerRxGrants) == kControlBurst; };
  EXPECT_TRUE(flood(kControlBurst, all));
  EXPECT_TRUE(counts(frame_of(kGood), Counter::TunTxPackets));
  EXPECT_EQ(peer().state, "connected");
  EXPECT_EQ(peer().sessions[0].last_error, "");
}

// On iWARP the side that dialled must send first.
TEST_F(RawPeer, OnIwarpAnAcceptedConnectionIsSilentUntilItHears) {
  support::LoopbackOptions device;
  device.capabilities.link = "iWARP";
  options.keepalive = 10ms;
  start(device);
  dial(winning_hello());
  ASSERT_TRUE(run_until([&] { return ready(); }));
  tun.send(ip_packet("10.77.0.2", "10.77.0.1", to_bytes("x")));
  run_until([&] { return false; }, 2000);
  EXPECT_EQ(counter(Counter::PeerTxDoorbells), 0U);
  Bytes control(kFrameHeader);
  write_control_frame(control, 0);
  send(control);
  EXPECT_TRUE(run_until([&] { return counter(Counter::PeerTxPackets) == 1; }));
}

}  // namespace
}  // namespace ipoverbs::transport
