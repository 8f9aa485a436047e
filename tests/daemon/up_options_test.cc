#include "daemon/up_options.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/daemon/complaint.h"
#include "tests/daemon/interfaces.h"

namespace ipoverbs::daemon {
namespace {

using namespace std::chrono_literals;

UpCommand build(const std::string& file, const std::vector<std::string>& args = {}) {
  return build_up(up_grammar().parse_config(file, "n.conf"), up_grammar().parse_command_line(args),
                  index_of_eth0);
}

std::string up_complaint(const std::string& file, const std::vector<std::string>& args = {}) {
  return complaint_of([&] { build(file, args); });
}

std::string show(const std::vector<Prefix>& prefixes) {
  std::vector<std::string> texts;
  for (const Prefix& prefix : prefixes) texts.push_back(prefix.to_string());
  return fmt::format("{}", fmt::join(texts, " "));
}

// What every good configuration below has.
const std::string kBase = "underlay = 192.0.2.1\naddress = 10.77.0.1/24\naddress = fd77::1/64\n";

TEST(UpOptions, HasDefaults) {
  const UpCommand command = build("underlay = 192.0.2.1\n");
  const UpOptions& o = command.options;
  EXPECT_EQ(o.tun.name, "ipov0");
  EXPECT_EQ(o.tun.mtu, IpMtu(65520));
  EXPECT_EQ(o.tun.queues, 2U);
  EXPECT_EQ(o.transport.mtu, o.tun.mtu);
  EXPECT_EQ(o.transport.port, 4755);
  EXPECT_EQ(o.control, "/run/ipoverbs/ipov0.sock");
  EXPECT_EQ(o.log_level, "info");
  EXPECT_TRUE(o.offloads);
  EXPECT_FALSE(o.device.device);
  EXPECT_EQ(command.warnings,
            std::vector<std::string>{"no peer is configured; nothing will be carried"});
}

TEST(UpOptions, TakesEveryKey) {
  const UpCommand command = build(
      "underlay = fe80::1%eth0\ndevice = rxe0\nport = 5000\npkey = 0x8001\nservice-level = 3\n"
      "traffic-class = 104\ntun = t0\ntun-netns = a\nmtu = 9000\naddress = 10.77.0.1/24\n"
      "routes = on\noffloads = off\nworkers = 3\nqueue-bytes = 1M\n"
      "peer = fe80::2%eth0 10.77.0.2,10.78.0.0/16 name=b\npeer = [fe80::3%eth0]:6000 fd77::3\n"
      "multicast = all\nconnect-timeout = 2s\nkeepalive = 500ms\ndead-time = 3s\n"
      "receive-buffers = 64\nsend-depth = 32\npackets-per-message = 4\n"
      "messages-per-doorbell = 8\nsignal-interval = 16\nspin = 50us\npin-workers = on\n"
      "window-bytes = 2M\nchecksum = full-separate\ncopy-break = 300\n"
      "control = /tmp/x.sock\nlog-level = debug\n");
  const UpOptions& o = command.options;
  const transport::Options& t = o.transport;
  EXPECT_EQ(o.device.underlay.scope, 7U);
  EXPECT_EQ(o.device.device, "rxe0");
  EXPECT_EQ(t.window_bytes, 2U << 20);
  EXPECT_EQ(t.checksum, transport::Checksum::FullSeparate);
  EXPECT_EQ(t.copy_break, 300U);
  EXPECT_EQ(t.path.pkey, 0x8001);
  EXPECT_EQ(t.path.service_level, 3);
  EXPECT_EQ(t.path.traffic_class, 104);
  EXPECT_EQ(o.tun.name, "t0");
  EXPECT_EQ(o.tun.netns, "a");
  EXPECT_EQ(o.tun.mtu, IpMtu(9000));
  EXPECT_EQ(show(o.tun.addresses), "10.77.0.1/24");
  EXPECT_EQ(t.own, o.tun.addresses);
  EXPECT_EQ(show(o.tun.routes), "10.78.0.0/16 fd77::3/128");
  EXPECT_FALSE(o.offloads);
  EXPECT_FALSE(o.tun.super_packets);
  EXPECT_EQ(o.tun.queues, 3U);
  EXPECT_EQ(o.tun.queue_bytes, 1048576U);
  ASSERT_EQ(t.peers.size(), 2U);
  EXPECT_EQ(t.peers[0].name, "b");
  EXPECT_EQ(t.peers[0].underlay.endpoint.port, 5000);
  EXPECT_EQ(t.peers[1].underlay.endpoint.port, 6000);
  EXPECT_EQ(t.multicast, transport::Multicast::All);
  EXPECT_EQ(t.connect_timeout, Duration(2s));
  EXPECT_EQ(t.keepalive, Duration(500ms));
  EXPECT_EQ(t.dead_time, Duration(3s));
  EXPECT_EQ(t.receive_buffers, 64U);
  EXPECT_EQ(t.send_depth, 32U);
  EXPECT_EQ(t.packets_per_message, 4U);
  EXPECT_EQ(t.messages_per_doorbell, 8U);
  EXPECT_EQ(t.signal_interval, 16U);
  EXPECT_EQ(t.spin, Duration(50us));
  EXPECT_TRUE(t.pin_workers);
  EXPECT_EQ(o.control, "/tmp/x.sock");
  EXPECT_EQ(o.log_level, "debug");
  EXPECT_TRUE(command.warnings.empty());
}

TEST(UpOptions, CommandLineReplacesTheFileAndAddsToIt) {
  const UpCommand command =
      build(kBase + "mtu = 1500\npeer = 192.0.2.2 10.77.0.2\n",
            {"--mtu", "9000", "--peer", "192.0.2.3 10.77.0.3", "--check", "--tun", "t1"});
  EXPECT_EQ(command.options.tun.mtu, IpMtu(9000));
  EXPECT_EQ(command.options.transport.peers.size(), 2U);
  EXPECT_EQ(command.options.control, "/run/ipoverbs/t1.sock");
  EXPECT_TRUE(command.check);
}

TEST(UpOptions, NestedPrefixesAreLongestMatchAndNoComplaint) {
  const UpCommand command = build(
      kBase + "peer = 192.0.2.2 10.77.0.0/24\npeer = 192.0.2.3 10.77.0.128/25,10.77.0.200/32\n");
  EXPECT_EQ(command.options.transport.peers.size(), 2U);
  EXPECT_TRUE(command.options.tun.routes.empty());  // the interface's own prefix covers them
}

TEST(UpOptions, HostBitsAreTakenOffWithAWarning) {
  const UpCommand command = build(kBase + "peer = 192.0.2.2 10.78.0.5/24\n");
  EXPECT_EQ(show(command.options.transport.peers[0].prefixes), "10.78.0.0/24");
  EXPECT_EQ(command.warnings,
            std::vector<std::string>{"n.conf:4: peer: 10.78.0.5/24 has host bits; taken as "
                                     "10.78.0.0/24"});
}

TEST(UpOptions, RoutesCanBeLeftToTheUser) {
  EXPECT_EQ(show(build(kBase + "peer = 192.0.2.2 10.78.0.0/24\n").options.tun.routes),
            "10.78.0.0/24");
  EXPECT_TRUE(
      build(kBase + "peer = 192.0.2.2 10.78.0.0/24\nroutes = off\n").options.tun.routes.empty());
}

TEST(UpOptions, GidsAreNoIpAddresses) {
  const UpCommand command =
      build("underlay = gid:fe80::1\naddress = fe80::9/64\npeer = gid:fe80::2 fe80::a\n");
  EXPECT_TRUE(command.options.device.by_gid);
  EXPECT_TRUE(command.options.transport.peers[0].underlay.by_gid);
  EXPECT_EQ(command.options.transport.peers[0].name, "gid:fe80::2");
}

TEST(UpOptions, SeparateFamiliesDoNotOverlap) {
  EXPECT_EQ(up_complaint(kBase + "peer = 192.0.2.2 ::/0\n"), "no complaint");
}

TEST(UpOptions, MapMakesAPeerOfEveryOtherHost) {
  const UpCommand command =
      build("underlay = 192.0.2.17\naddress = 10.77.0.1/24\nmap = 10.77.0.0/29 192.0.2.16/29\n");
  std::string text;
  for (const auto& peer : command.options.transport.peers) {
    text += fmt::format("{}={} ", peer.underlay.endpoint.to_string(), show(peer.prefixes));
  }
  EXPECT_EQ(text,
            "192.0.2.18:4755=10.77.0.2/32 192.0.2.19:4755=10.77.0.3/32 "
            "192.0.2.20:4755=10.77.0.4/32 192.0.2.21:4755=10.77.0.5/32 "
            "192.0.2.22:4755=10.77.0.6/32 ");
  EXPECT_EQ(
      build("underlay = 192.0.2.1\nmap = fd77::/127 192.0.2.0/31\n").options.transport.peers.size(),
      1U);
}

using Case = std::pair<std::string, std::string>;

TEST(UpOptions, RefusesBadValuesByFileAndLine) {
  const Case kCases[] = {
      {"mtu = 9000x", "n.conf:4: mtu: '9000x' is not a number from 68 to 65520"},
      {"mtu = -1", "n.conf:4: mtu: '-1' is not a number from 68 to 65520"},
      {"mtu = 65536", "n.conf:4: mtu: '65536' is not a number from 68 to 65520"},
      {"port = 0", "n.conf:4: port: '0' is not a number from 1 to 65535"},
      {"pkey = 0x8000",
       "n.conf:4: pkey: the low 15 bits of a partition key are not 0, as in "
       "0x8001"},
      {"service-level = 16", "n.conf:4: service-level: '16' is not a number from 0 to 15"},
      {"traffic-class = 256", "n.conf:4: traffic-class: '256' is not a number from 0 to 255"},
      {"tun = a/b",
       "n.conf:4: tun: 'a/b' is not an interface name: 1 to 15 characters without "
       "blanks, '/', ':' and '%'"},
      {"workers = 65", "n.conf:4: workers: '65' is not a number from 1 to 64"},
      {"queue-bytes = 1",
       "n.conf:4: queue-bytes: '1' is not a number of bytes from 65536 to "
       "1073741824, as in 65536 or 4M"},
      {"offloads = yes", "n.conf:4: offloads: 'yes' is neither on nor off"},
      {"multicast = some", "n.conf:4: multicast: 'some' is not one of off, all"},
      {"keepalive = 5",
       "n.conf:4: keepalive: '5' is not a time from 10ms to 3600s with its unit "
       "us, ms or s"},
      {"keepalive = 5s", "n.conf:4: keepalive: dead-time 5s is not 10ms longer than keepalive 5s"},
      {"keepalive = 11ms\ndead-time = 20ms",
       "n.conf:5: dead-time: dead-time 20ms is not 10ms longer than keepalive 11ms"},
      {"dead-time = 1s", "n.conf:4: dead-time: dead-time 1s is not 10ms longer than keepalive 1s"},
      {"signal-interval = 65",
       "n.conf:4: signal-interval: signal-interval 65 is more than half of send-depth 128"},
      {"send-depth = 16",
       "n.conf:4: send-depth: signal-interval 16 is more than half of send-depth 16"},
      {"log-level = loud",
       "n.conf:4: log-level: 'loud' is not one of error, warn, info, debug, trace"},
      {"control = " + std::string(108, 'x'),
       "n.conf:4: control: the path has 108 bytes; at most 107 are allowed"},
      {"address = 0.0.0.0/8",
       "n.conf:4: address: '0.0.0.0/8' is not the address of one host, as in 10.0.0.1/24"},
      {"address = 10.77.0.1/16",
       "n.conf:4: address: address 10.77.0.1 is given twice (first at n.conf:2: address)"},
      {"underlay = 192.0.2.9",
       "n.conf:4: underlay: already given at n.conf:1: underlay; give it "
       "once"},
      {"config = x", "n.conf:4: config: a file cannot name another"},
  };
  for (const auto& [line, right] : kCases) EXPECT_EQ(up_complaint(kBase + line + "\n"), right);
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1:4755\n"),
            "n.conf:1: underlay: '192.0.2.1:4755' has a port; give it by the key 'port'");
  EXPECT_EQ(up_complaint("mtu = 1500\n"),
            "--underlay is missing; give this host's address on the RDMA network, as in --underlay "
            "192.0.2.1 ('ipoverbs devices' lists them)");
}

TEST(UpOptions, OnePrefixBelongsToOnePeer) {
  const Case kCases[] = {
      {"peer = 192.0.2.2 10.77.0.0/24 name=b\npeer = 192.0.2.3 10.77.0.0/24 name=c\n",
       "n.conf:5: peer: prefix 10.77.0.0/24 of peer 'c' is already that of peer 'b' (n.conf:4: "
       "peer); a prefix belongs to one peer"},
      {"peer = 192.0.2.2 10.77.0.0/24 name=b\npeer = 192.0.2.3 10.77.0.5/24 name=c\n",
       "n.conf:5: peer: prefix 10.77.0.0/24 of peer 'c' is already that of peer 'b' (n.conf:4: "
       "peer); a prefix belongs to one peer"},
      {"peer = 192.0.2.2 0.0.0.0/0\npeer = 192.0.2.3 0.0.0.0/0\n",
       "n.conf:5: peer: prefix 0.0.0.0/0 of peer '192.0.2.3' is already that of peer '192.0.2.2' "
       "(n.conf:4: peer); a prefix belongs to one peer"},
      {"peer = 192.0.2.2 fd77::/64\npeer = 192.0.2.3 FD77:0::/64\n",
       "n.conf:5: peer: prefix fd77::/64 of peer '192.0.2.3' is already that of peer '192.0.2.2' "
       "(n.conf:4: peer); a prefix belongs to one peer"},
      {"peer = 192.0.2.2 10.77.0.2,10.77.0.2/32\n",
       "n.conf:4: peer: peer '192.0.2.2' has prefix 10.77.0.2/32 twice"},
      {"peer = 192.0.2.2 10.77.0.2\nmap = 10.77.0.0/30 192.0.2.4/30\n",
       "n.conf:5: map: prefix 10.77.0.2/32 of peer '192.0.2.6' is already that of peer '192.0.2.2' "
       "(n.conf:4: peer); a prefix belongs to one peer"},
      {"peer = 192.0.2.2 10.77.0.1\n",
       "n.conf:4: peer: prefix 10.77.0.1/32 of peer '192.0.2.2' is our own address (n.conf:2: "
       "address)"},
  };
  for (const auto& [lines, right] : kCases) EXPECT_EQ(up_complaint(kBase + lines), right);
}

TEST(UpOptions, PeersAreTellableApart) {
  const Case kCases[] = {
      {"peer = 192.0.2.2 10.77.0.2\npeer = 192.0.2.2:4755 10.77.0.3\n",
       "n.conf:5: peer: peer '192.0.2.2:4755' has the underlay address of peer '192.0.2.2' "
       "(n.conf:4: peer); give all prefixes in one line, separated by commas"},
      {"peer = 192.0.2.2 10.77.0.2 name=b\npeer = 192.0.2.3 10.77.0.3 name=b\n",
       "n.conf:5: peer: name 'b' is already that of another peer (n.conf:4: peer); give each peer "
       "a name of its own"},
      {"peer = 192.0.2.1 10.77.0.2\n",
       "n.conf:4: peer: peer '192.0.2.1' has our own underlay address and port"},
      {"peer = 2001:db8::2 10.77.0.2\n",
       "n.conf:4: peer: the underlay of peer '2001:db8::2' is IPv6, ours (n.conf:1: underlay) is "
       "IPv4; both must be of one kind"},
      {"peer = gid:fe80::2 10.77.0.2\n",
       "n.conf:4: peer: the underlay of peer 'gid:fe80::2' is a GID, ours (n.conf:1: underlay) is "
       "IPv4; both must be of one kind"},
  };
  for (const auto& [lines, right] : kCases) EXPECT_EQ(up_complaint(kBase + lines), right);
  // Two daemons on one host.
  EXPECT_EQ(up_complaint(kBase + "peer = 192.0.2.1:4756 10.77.0.2\n"), "no complaint");
}

TEST(UpOptions, UnderlayAndOverlayDoNotOverlap) {
  const Case kCases[] = {
      {"peer = 192.0.2.2 192.0.2.0/24 name=b\n",
       "n.conf:1: underlay: underlay address 192.0.2.1 lies within the overlay: prefix "
       "192.0.2.0/24 of peer 'b' (n.conf:4: peer); underlay and overlay must not overlap"},
      {"peer = 192.0.3.2 192.0.3.0/24 name=b\n",
       "n.conf:4: peer: underlay address 192.0.3.2 lies within the overlay: prefix 192.0.3.0/24 of "
       "peer 'b' (n.conf:4: peer); underlay and overlay must not overlap"},
      {"peer = 10.77.0.2 10.78.0.0/24\n",
       "n.conf:4: peer: underlay address 10.77.0.2 lies within the overlay: our address "
       "10.77.0.1/24 (n.conf:2: address); underlay and overlay must not overlap"},
      {"peer = 192.0.2.2 0.0.0.0/0 name=b\n",
       "n.conf:1: underlay: underlay address 192.0.2.1 lies within the overlay: prefix 0.0.0.0/0 "
       "of peer 'b' (n.conf:4: peer); underlay and overlay must not overlap"},
  };
  for (const auto& [lines, right] : kCases) EXPECT_EQ(up_complaint(kBase + lines), right);
}

TEST(UpOptions, Ipv6NeedsItsMtu) {
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1\naddress = fd77::1/64\nmtu = 1279\n"),
            "n.conf:3: mtu: 1279 is too small for IPv6, which our address fd77::1/64 (n.conf:2: "
            "address) needs; at least 1280");
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1\npeer = 192.0.2.2 fd77::2\n", {"--mtu", "68"}),
            "--mtu: 68 is too small for IPv6, which prefix fd77::2/128 of peer '192.0.2.2' "
            "(n.conf:2: peer) needs; at least 1280");
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1\naddress = fd77::1/64\nmtu = 1280\n"),
            "no complaint");
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1\naddress = 10.77.0.1/24\nmtu = 68\n"),
            "no complaint");
}

TEST(UpOptions, PeersAreLimited) {
  std::string maps;
  for (int i = 0; i < 17; ++i) {
    maps += fmt::format("map = 10.{}.0.0/24 172.16.{}.0/24\n", i, i);
  }
  EXPECT_EQ(up_complaint("underlay = 192.0.2.1\n" + maps),
            "n.conf:18: map: these are more than 4096 peers, which is the most that is allowed");
}

}  // namespace
}  // namespace ipoverbs::daemon
