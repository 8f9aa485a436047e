// One worker, driven turn by turn, against peers that the test plays by hand: what becomes of a
// packet, and which counter says so.
#include "transport/worker.h"

#include <cerrno>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csum/packet.h"
#include "tests/support/fake_tun.h"
#include "tests/support/loopback_rig.h"
#include "tests/support/packets.h"
#include "tests/support/refuse_writes.h"

namespace ipoverbs::transport {
namespace {

using support::Bytes;
using support::ip_packet;
using support::to_bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kFirstReceive = 32;  // slots of a peer that are receives

const Bytes kOut = ip_packet("10.77.0.1", "10.77.0.2", to_bytes("out"));
const Bytes kIn = ip_packet("10.77.0.2", "10.77.0.1", to_bytes("in"));
const Bytes kToAll = ip_packet("10.77.0.1", "224.0.0.5", to_bytes("to all"));

// A far end and the queue pair that leads to it. Peer i is 192.0.2.<2+i>, 10.77.0.<2+i> and
// fd77::<2+i>.
struct Peer {
  Peer(support::LoopbackNetwork& network, std::size_t i)
      : raw(network, support::address(fmt::format("192.0.2.{}", i + 2))) {}
  support::Host raw;
  std::unique_ptr<verbs::Connection> connection;

  // The messages that came in, since the last time.
  std::vector<Bytes> messages() {
    std::vector<Bytes> got;
    for (const std::string& line : raw.poll()) {
      if (!line.starts_with("receive ")) continue;
      const auto slot = raw.slot(kFirstReceive + taken_++);
      const auto length = static_cast<std::size_t>(std::stoi(line.substr(line.find(" of ") + 4)));
      got.emplace_back(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(length));
    }
    return got;
  }

 private:
  std::size_t taken_ = 0;
};

// The worker has 192.0.2.1, 10.77.0.1 and fd77::1.
class WorkerTest : public testing::Test, public verbs::EventHandler {
 protected:
  WorkerTest() {
    options.own = {*Prefix::parse("10.77.0.1"), *Prefix::parse("fd77::1")};
    options.capabilities = 0x1f;
    options.receive_buffers = 8;
    options.slabs = 16;
  }
  void on_event(verbs::Event&) override {}

  // With as many peers as `credits`, each of which has granted so many messages.
  void start(const std::vector<std::uint16_t>& credits) {
    for (std::size_t i = 0; i < credits.size(); ++i) {
      PeerOptions peer;
      peer.prefixes = {*Prefix::parse(fmt::format("10.77.0.{}", i + 2)),
                       *Prefix::parse(fmt::format("fd77::{}", i + 2))};
      options.peers.push_back(peer);
    }
    routes.emplace(options.peers, options.own);
    worker.emplace(*device, tun.queue(), 0, options, *routes, bell, *log);
    for (std::size_t i = 0; i < credits.size(); ++i) connect(i);
    for (std::size_t i = 0; i < credits.size(); ++i) activate(i, credits[i]);
    turns();
  }
  void connect(std::size_t i) {
    Peer& peer = peers.emplace_back(network, i);
    peer.raw.device->listen(support::kPort);
    peer.connection = device->dial({.endpoint = {peer.raw.underlay, support::kPort, 0}}, {});
    device->process_events(*this);
    peer.connection->create_queue_pair(worker->queue_pair_config());
    peer.connection->connect({});
    peer.raw.process();
    peer.raw.create_queue_pair();
    for (std::size_t slot = kFirstReceive; slot < 64; ++slot) peer.raw.receive(slot);
    peer.raw.connection->accept({});
    device->process_events(*this);
  }
  void activate(std::size_t i, std::uint16_t credits) {
    LinkConfig config;
    config.id = link(i);
    config.peer = static_cast<PeerIndex>(i);
    config.queue_pair = peers[i].connection->queue_pair();
    config.limits = worker->send_limits();
    config.gauges = std::make_shared<LinkGauges>();
    worker->submit(AttachLink{config});
    Hello hello;
    hello.capabilities = 0x1f;
    hello.max_message = kMaxMessage;
    hello.mtu = mtu;
    hello.credits = credits;
    worker->submit(ActivateLink{config.id, hello, true});
  }
  static LinkId link(std::size_t i) { return LinkId(static_cast<std::uint32_t>(i) + 1); }

  // Turns, at one time, until there is nothing more to do.
  void turns() {
    for (int i = 0; i < 100 && worker->turn(now) > 0; ++i) continue;
  }
  // The worker's host sends.
  void send(const Bytes& packet, const tun::VirtioNetHeader& header = {}) {
    ASSERT_TRUE(tun.send(packet, header));
    turns();
  }
  // The worker reads packets one by one until it finds several, up to the eighth turn. Returns how
  // many it has read.
  std::uint64_t come_together() {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(tun.send(kOut));
    while (counter(Counter::TunRxPackets) < 10) worker->turn(now);
    return counter(Counter::TunRxPackets);
  }
  // The peer sends; the worker has not looked yet.
  void come_from(std::size_t i, const Bytes& packet) {
    Bytes frame(frame_size(packet.size()));
    std::ranges::copy(packet, frame.begin() + kFrameHeader);
    finish_packet_frame(frame, packet.size());
    support::Host& raw = peers[i].raw;
    ASSERT_LE(frame.size(), support::Host::kSlot);
    std::ranges::copy(frame, raw.slot(0).begin());
    ASSERT_EQ(raw.send(0, std::vector{raw.sge(0, frame.size())}), 0);
  }
  // The peer grants so many messages; the worker has not looked yet.
  void grant(std::size_t i, std::uint16_t credits) {
    support::Host& raw = peers[i].raw;
    write_control_frame(raw.slot(0).first(kFrameHeader), credits);
    ASSERT_EQ(raw.send(0, std::vector{raw.sge(0, kFrameHeader)}), 0);
  }
  std::uint64_t counter(Counter name) { return worker->counters().value(name); }
  // "name value" of every drop that was counted.
  std::vector<std::string> drops() {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      const auto name = static_cast<Counter>(i);
      if (counter(name) == 0 || to_string(name).find("_drop_") == std::string_view::npos) continue;
      lines.push_back(fmt::format("{} {}", to_string(name), counter(name)));
    }
    return lines;
  }

  support::LoopbackNetwork network;
  std::unique_ptr<verbs::Device> device = network.open(support::kA, {});
  support::FakeTun tun;
  Options options;
  IpMtu mtu{65520};  // of the peers that connect
  TimePoint now = monotonic_now();
  EventFd bell;
  std::shared_ptr<Logger> log = make_null_logger();
  std::optional<RouteTable> routes;
  std::optional<Worker> worker;
  std::deque<Peer> peers;  // their queue pairs go before the worker's completion queue
};

// Refuses every send of the queue pair's device.
void refuse_sends(const verbs::Connection& connection) {
  connection.queue_pair()->context->ops.post_send = [](ibv_qp*, ibv_send_wr* list,
                                                       ibv_send_wr** refused) {
    *refused = list;
    return EIO;
  };
}

TEST_F(WorkerTest, NothingIsDropped) {
  start({8});
  send(kOut);
  EXPECT_EQ(peers[0].messages().size(), 1U);
  come_from(0, kIn);
  turns();
  EXPECT_EQ(tun.receive(), kIn);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, PacketsThatWaitAreReadTogetherHoweverLongATurnTakes) {
  start({100});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(tun.send(kOut));
  for (int i = 0; i < 8; ++i) worker->turn(now += std::chrono::milliseconds(1));
  EXPECT_EQ(counter(Counter::TunRxPackets), 20U);
}

TEST_F(WorkerTest, AfterPacketsThatCameTogetherTheNextTurnReadsAllAgain) {
  start({100});
  const std::uint64_t before = come_together();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(tun.send(kOut));
  worker->turn(now);
  EXPECT_EQ(counter(Counter::TunRxPackets), before + 3);
}

TEST_F(WorkerTest, SeveralPacketsAndThenNoCreditCameTogether) {
  options.packets_per_message = 1;
  start({10});
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(tun.send(kOut));
  for (int i = 0; i < 8; ++i) worker->turn(now);
  EXPECT_EQ(counter(Counter::TunRxPackets), 10U);
  grant(0, 10);
  worker->turn(now);
  EXPECT_EQ(counter(Counter::TunRxPackets), 20U);
}

TEST_F(WorkerTest, AfterALonePacketTheNextTurnReadsOne) {
  start({100});
  const std::uint64_t before = come_together();
  ASSERT_TRUE(tun.send(kOut));
  worker->turn(now);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(tun.send(kOut));
  worker->turn(now);
  EXPECT_EQ(counter(Counter::TunRxPackets), before + 2);
}

// What came meanwhile waits to be taken, so the peer is not dead yet.
TEST_F(WorkerTest, WhatTheWorkerMissedIsNotItsPeersSilence) {
  start({8});
  std::ignore = worker->take_reports();
  worker->turn(now += 3 * options.dead_time);
  EXPECT_THAT(worker->take_reports(), IsEmpty());
  for (Duration silence{}; silence <= options.dead_time;
       silence += std::chrono::milliseconds(200)) {
    worker->turn(now += std::chrono::milliseconds(200));
  }
  const std::vector<Report> reports = worker->take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_THAT(reports[0].why, HasSubstr("nothing was received"));
}

TEST_F(WorkerTest, APeerWithoutCreditBesideOthers_ItsQueueIsFull) {
  start({0, 8});
  for (int i = 0; i < 5; ++i) send(ip_packet("10.77.0.1", "10.77.0.2", Bytes(60000)));
  // A slab of 256 KiB holds four.
  EXPECT_THAT(drops(), ElementsAre("tx_drop_queue_full 1"));
  EXPECT_EQ(counter(Counter::PeerTxPackets), 0U);
}

TEST_F(WorkerTest, TheOnlyPeerHasNoCredit_TheInterfaceIsLeftUnread) {
  start({0});
  const std::uint64_t before = counter(Counter::TxStallCredit);
  send(kOut);
  EXPECT_GT(counter(Counter::TxStallCredit), before);
  EXPECT_EQ(counter(Counter::TunRxPackets), 0U);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, AllMemoryIsInFlight_TheInterfaceIsLeftUnread) {
  options.slabs = 2;
  start({100});
  network.partition(support::kA, peers[0].raw.underlay);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(tun.send(ip_packet("10.77.0.1", "10.77.0.2", Bytes(60000))));
  }
  turns();
  EXPECT_GT(counter(Counter::TxStallMemory), 0U);
  EXPECT_EQ(counter(Counter::TunRxPackets), counter(Counter::PeerTxPackets));
  EXPECT_LT(counter(Counter::TunRxPackets), 20U);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, TheInterfaceCannotBeRead) {
  start({8});
  come_from(0, kIn);
  turns();
  tun.close_host();  // with a packet unread: ECONNRESET
  turns();
  EXPECT_EQ(counter(Counter::TunReadError), 1U);
  EXPECT_EQ(counter(Counter::TunRxPackets), 0U);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, ASendFails_TheSessionEnds) {
  start({8});
  std::ignore = worker->take_reports();
  network.partition(support::kA, peers[0].raw.underlay);
  send(kOut);
  network.break_queue_pair(verbs::QpNumber(peers[0].connection->queue_pair()->qp_num));
  turns();
  EXPECT_EQ(counter(Counter::RxError), 1U);
  const std::vector<Report> reports = worker->take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].kind, Report::Kind::Failed);
}

// A partial checksum whose place lies outside the packet: sent from where it was read, copied, or
// queued.
struct ChecksumWays : WorkerTest, testing::WithParamInterface<std::tuple<std::uint32_t, int>> {};

TEST_P(ChecksumWays, APlaceOutsideThePacketIsDropped) {
  options.copy_break = std::get<0>(GetParam());
  start({static_cast<std::uint16_t>(std::get<1>(GetParam())), 8});
  tun::VirtioNetHeader header;
  header.flags = tun::VIRTIO_NET_HDR_F_NEEDS_CSUM;
  header.csum_start = Le16(60000);
  header.csum_offset = Le16(6);
  send(kOut, header);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_checksum 1"));
  EXPECT_THAT(peers[0].messages(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Worker, ChecksumWays,
                         testing::Values(std::tuple(0U, 8), std::tuple(1500U, 8),
                                         std::tuple(0U, 0)));

TEST_F(WorkerTest, TheDeviceRefusesASend_ThePacketIsCountedAndTheSessionEnds) {
  start({8});
  std::ignore = worker->take_reports();
  refuse_sends(*peers[0].connection);
  send(kOut);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_post_failed 1"));
  const std::vector<Report> reports = worker->take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].kind, Report::Kind::Failed);
  EXPECT_THAT(reports[0].why, HasSubstr("refused a send"));
}

TEST_F(WorkerTest, TheDeviceRefusesAChainThatHadToGoFirst_BothPacketsAreCounted) {
  options.packets_per_message = options.messages_per_doorbell = 1;
  start({100});
  come_together();
  const std::uint64_t before = counter(Counter::PeerTxPackets);
  refuse_sends(*peers[0].connection);
  ASSERT_TRUE(tun.send(kOut));
  send(kOut);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_post_failed 2"));
  EXPECT_EQ(counter(Counter::PeerTxPackets), before);
}

TEST_F(WorkerTest, ASessionEndsWhilePacketsWait) {
  start({0, 8});
  send(kOut);
  send(kOut);
  EXPECT_THAT(drops(), IsEmpty());
  worker->submit(DetachLink{link(0)});
  turns();
  EXPECT_THAT(drops(), ElementsAre("tx_drop_post_failed 2"));
}

TEST_F(WorkerTest, MulticastFromAPeer) {
  start({8});
  come_from(0, ip_packet("10.77.0.2", "224.0.0.5", to_bytes("four")));
  come_from(0, ip_packet("fd77::2", "ff02::1", to_bytes("six")));
  come_from(0, ip_packet("10.77.0.2", "255.255.255.255", to_bytes("broadcast")));
  turns();
  EXPECT_THAT(drops(), ElementsAre("rx_drop_multicast 3"));
  EXPECT_FALSE(tun.receive());
}

TEST_F(WorkerTest, MulticastFromAPeer_All) {
  options.multicast = Multicast::All;
  start({8});
  const Bytes packet = ip_packet("10.77.0.2", "224.0.0.5", to_bytes("four"));
  come_from(0, packet);
  turns();
  EXPECT_EQ(tun.receive(), packet);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, MulticastToAll_ACopyForEachPeer) {
  options.multicast = Multicast::All;
  start({8, 8, 8});
  send(kToAll);
  for (Peer& peer : peers) {
    const std::vector<Bytes> messages = peer.messages();
    ASSERT_EQ(messages.size(), 1U);
    ASSERT_EQ(messages[0].size(), frame_size(kToAll.size()));
    EXPECT_TRUE(
        std::ranges::equal(std::span(messages[0]).subspan(kFrameHeader, kToAll.size()), kToAll));
  }
  EXPECT_EQ(counter(Counter::TunRxPackets), 1U);
  EXPECT_EQ(counter(Counter::MulticastCopies), 2U);
  EXPECT_EQ(counter(Counter::PeerTxPackets), 3U);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, BroadcastToAll_ACopyForEachPeer) {
  options.multicast = Multicast::All;
  start({8, 8});
  send(ip_packet("10.77.0.1", "255.255.255.255", to_bytes("to all")));
  for (Peer& peer : peers) EXPECT_EQ(peer.messages().size(), 1U);
  EXPECT_THAT(drops(), IsEmpty());
}

TEST_F(WorkerTest, MulticastToAll_EachCopyThatIsDroppedIsCountedOnce) {
  options.multicast = Multicast::All;
  mtu = IpMtu(68);
  start({8, 8, 8});
  send(ip_packet("10.77.0.1", "224.0.0.5", Bytes(100)));
  EXPECT_EQ(counter(Counter::MulticastCopies), 2U);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_too_big 3"));
}

// The packets of the messages, end to end.
std::vector<Bytes> packets_of(std::vector<Bytes> messages) {
  std::vector<Bytes> packets;
  for (Bytes& message : messages) {
    FrameReader reader(message);
    Frame frame;
    while (reader.next(frame) == FrameReader::Result::Frame) {
      if (frame.type != FrameType::Packet) continue;
      packets.emplace_back(frame.packet().begin(), frame.packet().end());
    }
  }
  return packets;
}

TEST_F(WorkerTest, APacketAboveThePeersMtuThatMayBeFragmented) {
  mtu = IpMtu(68);
  start({8});
  send(ip_packet("10.77.0.1", "10.77.0.2", Bytes(100)));
  const std::vector<Bytes> got = packets_of(peers[0].messages());
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].size(), 68U);
  EXPECT_EQ(got[2].size(), 24U);
  EXPECT_EQ(counter(Counter::PeerTxPackets), 3U);
  EXPECT_EQ(counter(Counter::TxFragments), 2U);
  EXPECT_THAT(drops(), IsEmpty());
}

class WorkerChecksums : public WorkerTest, public testing::WithParamInterface<Checksum> {};

TEST_P(WorkerChecksums, OfFragmentsAreComplete) {
  options.checksum = GetParam();
  mtu = IpMtu(68);
  start({8});
  Bytes packet = ip_packet("10.77.0.1", "10.77.0.2", Bytes(64, std::byte{0x42}));
  store(std::span(packet), 24, Be16(64));  // UDP's length
  const auto place = csum::make_partial(packet, csum::locate(packet));
  ASSERT_TRUE(place);
  tun::VirtioNetHeader header;
  header.flags = tun::VIRTIO_NET_HDR_F_NEEDS_CSUM;
  header.csum_start = Le16(place->start);
  header.csum_offset = Le16(place->offset);

  send(packet, header);

  const std::vector<Bytes> got = packets_of(peers[0].messages());
  ASSERT_EQ(got.size(), 2U);
  Bytes whole = packet;
  std::copy(got[0].begin() + 20, got[0].end(), whole.begin() + 20);
  std::copy(got[1].begin() + 20, got[1].end(),
            whole.begin() + static_cast<std::ptrdiff_t>(got[0].size()));
  store(std::span(whole), 10, csum::ipv4_header_checksum(std::span(whole).first(20)));
  EXPECT_TRUE(csum::is_good(csum::verify(whole, csum::locate(whole))));
}

INSTANTIATE_TEST_SUITE_P(Settings, WorkerChecksums,
                         testing::Values(Checksum::Full, Checksum::Auto));

TEST_F(WorkerTest, FragmentsWithoutCreditWaitAndThoseBeyondTheQueueAreDropped) {
  mtu = IpMtu(30000);
  start({0, 8});
  for (int i = 0; i < 5; ++i) send(ip_packet("10.77.0.1", "10.77.0.2", Bytes(59'900)));
  // A slab of 256 KiB holds eight of 30,000 bytes.
  EXPECT_EQ(counter(Counter::TxFragments), 5U);
  EXPECT_EQ(counter(Counter::PeerTxPackets), 0U);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_queue_full 2"));
}

TEST_F(WorkerTest, MulticastToAll_NobodyIsConnected) {
  options.multicast = Multicast::All;
  start({8});
  worker->submit(DetachLink{link(0)});
  send(kToAll);
  EXPECT_EQ(counter(Counter::MulticastCopies), 0U);
  EXPECT_THAT(drops(), ElementsAre("tx_drop_peer_down 1"));
}

// A tunnel's packet, whose inner checksum is partial: what its field holds counts, so that
// completing it twice would spoil it.
TEST_F(WorkerTest, MulticastToAll_APartialChecksumIsCompletedOnce) {
  options.multicast = Multicast::All;
  start({8, 8, 8});
  Bytes datagram(64, std::byte{0x5a});
  store(std::span(datagram), 4, Be16(64));
  store(std::span(datagram), 6, Be16(0));
  Bytes packet = ip_packet("10.77.0.1", "224.0.0.5", datagram);
  tun::VirtioNetHeader header;
  header.flags = tun::VIRTIO_NET_HDR_F_NEEDS_CSUM;
  header.csum_start = Le16(20 + 8 + 20);
  header.csum_offset = Le16(6);
  send(packet, header);
  ASSERT_EQ(csum::complete(packet, {20 + 8 + 20, 6}), csum::Completion::done);
  for (Peer& peer : peers) {
    const std::vector<Bytes> messages = peer.messages();
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(load<std::uint8_t>(std::span<const std::byte>(messages[0]), 5), kChecksumComplete);
    EXPECT_TRUE(
        std::ranges::equal(std::span(messages[0]).subspan(kFrameHeader, packet.size()), packet));
  }
}

// What write(2) to a TUN fails with (drivers/net/tun.c): EIO while the interface is down, EBADFD
// once it is gone.
struct TunErrors : WorkerTest, testing::WithParamInterface<std::pair<int, const char*>> {};

TEST_P(TunErrors, APacketThatCannotBeWrittenIsCounted) {
  start({8});
  std::thread([this] {
    support::refuse_long_writes(tun.queue(), 0, GetParam().first);
    come_from(0, kIn);
    turns();
  }).join();
  EXPECT_THAT(drops(), ElementsAre(fmt::format("{} 1", GetParam().second)));
  EXPECT_EQ(counter(Counter::PeerRxPackets), 1U);
  EXPECT_EQ(counter(Counter::TunTxPackets), 0U);
}

INSTANTIATE_TEST_SUITE_P(Worker, TunErrors,
                         testing::Values(std::pair(EIO, "rx_drop_tun_down"),
                                         std::pair(EINVAL, "rx_drop_tun_refused"),
                                         std::pair(EBADFD, "rx_drop_tun_error")));

TEST_F(WorkerTest, AMessageOfASessionThatIsGone) {
  start({8});
  come_from(0, kIn);
  worker->submit(DetachLink{link(0)});
  worker->submit(ForgetLink{link(0)});
  turns();
  EXPECT_EQ(counter(Counter::RxUnknownQueuePair), 1U);
  EXPECT_EQ(counter(Counter::PeerRxPackets), 0U);
  EXPECT_THAT(drops(), IsEmpty());
  EXPECT_FALSE(tun.receive());
}

}  // namespace
}  // namespace ipoverbs::transport
