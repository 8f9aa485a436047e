// A TUN interface as it should be: its configuration and what passes through it.
#include "tun/interface.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tun/namespace.h"
#include "tests/tun/rig.h"

namespace ipoverbs::tun {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

class InterfaceTest : public NamespaceTest {
 protected:
  Interface create(const Config& config) { return Interface::create(config, *logger_); }

  std::shared_ptr<Logger> logger_ = make_null_logger();
};

TEST_F(InterfaceTest, IsAsConfigured) {
  const Interface t0 = create(test_config());
  RouteSocket socket;
  const auto link = socket.find_link("t0");
  ASSERT_TRUE(link);
  EXPECT_EQ(t0.name(), "t0");
  EXPECT_EQ(link->index, t0.index());
  EXPECT_EQ(link->kind, "tun");
  EXPECT_TRUE(link->up);
  EXPECT_EQ(link->mtu, 65520U);
  EXPECT_EQ(link->queue_length, 256U);
  EXPECT_EQ(link->tun.value().queues, 2U);
  EXPECT_FALSE(link->tun.value().persistent);
  EXPECT_THAT(socket.addresses(t0.index()),
              ElementsAre(prefix("10.77.0.1/24"), prefix("fd77::1/64")));
  EXPECT_THAT(socket.routes(t0.index()),
              IsSupersetOf({prefix("10.78.0.0/16"), prefix("fd78::/64")}));
}

TEST_F(InterfaceTest, LeavesNothingBehind) {
  std::ignore = create(test_config());
  EXPECT_FALSE(RouteSocket().find_link("t0"));
  const Interface again = create(test_config());  // the lock is free as well
  EXPECT_EQ(RouteSocket().find_link("t0").value().index, again.index());
}

TEST_F(InterfaceTest, LeavesNoDescriptorsBehind) {
  const TestNamespace there;
  Config config = test_config();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    config.netns = i % 2 == 0 ? "" : there.path();
    std::ignore = create(config);
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST_F(InterfaceTest, MovesAreTheSameInterface) {
  Interface first = create(test_config());
  const int index = first.index();
  Interface second = std::move(first);
  EXPECT_EQ(second.index(), index);
  EXPECT_TRUE(RouteSocket().find_link("t0"));
}

TEST_F(InterfaceTest, HasSoManyQueues) {
  for (const unsigned queues : {1U, 2U, 16U}) {
    Config config = test_config();
    config.queues = queues;
    const Interface t0 = create(config);
    EXPECT_THAT(t0.queues(), SizeIs(queues));
    const TunInfo told = RouteSocket().find_link("t0").value().tun.value();
    EXPECT_EQ(told.multi_queue, queues > 1);
    EXPECT_EQ(told.queues, queues > 1 ? queues : 0);  // of a single queue the kernel says nothing
  }
}

TEST_F(InterfaceTest, QueuesAreNonblockingAndCloseOnExec) {
  const Interface t0 = create(test_config());
  for (const int queue : t0.queues()) {
    EXPECT_NE(::fcntl(queue, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(queue, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(InterfaceTest, VirtioHeaderIsTenBytesLittleEndian) {
  const Interface t0 = create(test_config());
  int size = 0;
  int little_endian = 0;
  EXPECT_EQ(::ioctl(t0.queues().front(), TUNGETVNETHDRSZ, &size), 0);
  EXPECT_EQ(::ioctl(t0.queues().front(), TUNGETVNETLE, &little_endian), 0);
  EXPECT_EQ(size, 10);
  EXPECT_EQ(little_endian, 1);
}

TEST_F(InterfaceTest, TakesTheSmallestAndTheLargestMtu) {
  for (const std::uint32_t mtu : {68U, 65520U}) {
    Config config = test_config();
    config.mtu = IpMtu(mtu);
    config.addresses = {prefix("10.77.0.1/24")};
    config.routes = {};
    const Interface t0 = create(config);
    EXPECT_EQ(RouteSocket().find_link("t0").value().mtu, mtu);
  }
}

TEST_F(InterfaceTest, QueueLengthComesFromBytes) {
  Config config = test_config();
  config.mtu = IpMtu(1500);
  config.queue_bytes = 1500 * 700;
  config.super_packets = false;
  const Interface t0 = create(config);
  EXPECT_EQ(t0.queue_length(), 700U);
  EXPECT_EQ(RouteSocket().find_link("t0").value().queue_length, 700U);
}

TEST_F(InterfaceTest, GsoLimitsAreSet) {
  Config config = test_config();
  config.gso_max_size = 32768;
  config.gso_max_segments = 44;
  const Interface t0 = create(config);
  const auto link = RouteSocket().find_link("t0");
  EXPECT_EQ(link.value().gso_max_size, 32768U);
  EXPECT_EQ(link.value().gso_max_segments, 44U);
}

TEST_F(InterfaceTest, KernelSaysNothingOfItsOwnAccord) {
  const Interface t0 = create(test_config());
  for (const int queue : t0.queues()) EXPECT_FALSE(read_record(queue));
  EXPECT_EQ(t0.statistics().tx_packets, 0U);
  EXPECT_EQ(t0.statistics().rx_packets, 0U);
}

TEST_F(InterfaceTest, OffloadsAreFound) {
  const Interface t0 = create(test_config());
  const Offloads& read = t0.offloads().read;
  const Offloads& write = t0.offloads().write;
  // Older than any kernel that this project supports; USO came with 6.2.
  EXPECT_TRUE(read.checksum && read.tso4 && read.tso6 && read.tso_ecn);
  EXPECT_TRUE(write.checksum && write.tso4 && write.tso6 && write.tso_ecn);
  EXPECT_EQ(read.uso, write.uso);
}

TEST_F(InterfaceTest, ReadSideLeavesUndoneWhatItMay) {
  Interface t0 = create(test_config());
  const UdpSocket socket("10.77.0.1", 1000);
  EXPECT_EQ(t0.set_read_offloads({}), Offloads{});
  socket.send_to("10.78.0.1", 100);
  auto records = read_all(t0.queues(), IPPROTO_UDP);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].header.flags, 0);

  EXPECT_EQ(t0.set_read_offloads({.checksum = true}), Offloads{.checksum = true});
  socket.send_to("10.78.0.1", 100);
  records = read_all(t0.queues(), IPPROTO_UDP);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].header.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
  EXPECT_EQ(records[0].header.csum_start.value(), 20);
  EXPECT_EQ(records[0].header.csum_offset.value(), 6);
  EXPECT_EQ(check(records[0].header, records[0].packet), HeaderCheck::Ok);
}

TEST_F(InterfaceTest, ReadOffloadsAreMadeConsistent) {
  Interface t0 = create(test_config());
  EXPECT_EQ(t0.set_read_offloads({.tso4 = true, .tso_ecn = true}), Offloads{});
  EXPECT_EQ(t0.set_read_offloads({.checksum = true, .tso_ecn = true}), Offloads{.checksum = true});
}

TEST_F(InterfaceTest, WrittenPacketArrives) {
  Config config = test_config();
  config.addresses = {prefix("10.77.0.2/24")};
  const Interface t0 = create(config);
  const UdpSocket socket("10.77.0.2", 9);
  EXPECT_EQ(write_record(t0.queues().front(), udp4_partial()), 0);
  EXPECT_THAT(socket.received_sizes(), ElementsAre(2));
  EXPECT_EQ(t0.statistics().rx_packets, 1U);
  EXPECT_EQ(t0.statistics().rx_bytes, 30U);
}

TEST_F(InterfaceTest, WrittenSuperPacketArrivesAsDatagrams) {
  Config config = test_config();
  config.addresses = {prefix("10.77.0.2/24")};
  const Interface t0 = create(config);
  if (!t0.offloads().write.uso) GTEST_SKIP() << "this kernel takes no USO super-packet";
  const UdpSocket socket("10.77.0.2", 9);
  for (const std::uint16_t claimed : {std::uint16_t{0}, std::uint16_t{65535}}) {
    Record record = udp4_super_packet();
    record.header.hdr_len = Le16(claimed);
    record.header.hdr_len = Le16(true_header_length(record.packet, record.header));
    EXPECT_EQ(write_record(t0.queues().front(), record), 0);
    EXPECT_THAT(socket.received_sizes(), ElementsAre(100, 100, 50));
  }
}

TEST_F(InterfaceTest, StatisticsCountWhatIsSentAndWhatIsLost) {
  Config config = test_config();
  config.queues = 1;
  const Interface t0 = create(config);
  const UdpSocket socket("10.77.0.1", 1000);
  constexpr std::size_t kSent = 300;
  for (std::size_t i = 0; i < kSent; ++i) socket.send_to("10.78.0.1", 1000);
  const std::size_t read = read_all(t0.queues(), IPPROTO_UDP).size();
  const Statistics statistics = t0.statistics();
  EXPECT_EQ(statistics.tx_packets, read);
  EXPECT_EQ(statistics.tx_bytes, read * 1028);
  EXPECT_EQ(read + statistics.tx_dropped, kSent);
  EXPECT_EQ(statistics.rx_packets, 0U);
}

}  // namespace
}  // namespace ipoverbs::tun
