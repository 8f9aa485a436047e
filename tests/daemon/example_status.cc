#include "tests/daemon/example_status.h"

namespace ipoverbs::daemon {

namespace {

using namespace std::chrono_literals;

Prefix prefix(const char* text) { return Prefix::parse(text).value(); }

verbs::Capabilities example_capabilities() {
  return {.device = "rxe0",
          .provider = "rdma-core",
          .link = "RoCE",
          .port = 1,
          .max_qp_wr = 1048576,
          .max_cqe = 32767,
          .max_send_sge = 32,
          .max_recv_sge = 31,
          .max_srq_wr = 4096,
          .max_srq_sge = 27,
          .max_message = 2147483648,
          .active_mtu = verbs::PathMtu(4096)};
}

transport::PeerStatus connected_peer() {
  transport::PeerStatus peer;
  peer.name = "b";
  peer.underlay = {IpAddress::parse("192.0.2.2").value(), 4755, 0};
  peer.prefixes = {prefix("10.99.0.2/32"), prefix("fd99::2/128")};
  peer.state = "connected";
  peer.mtu = IpMtu(9000);
  peer.tx_packets = 1000;
  peer.tx_bytes = 1028000;
  peer.rx_packets = 3;
  peer.rx_bytes = 252;
  transport::SessionStatus session;
  session.state = "established";
  session.established_count = 2;
  session.last_error = "disconnected";
  session.since = 3723s;
  session.queue_pair = verbs::QpNumber(0x11);
  session.path_mtu = verbs::PathMtu(4096);
  session.send_credits = 60;
  session.receive_share = 64;
  session.queued_packets = 5;
  peer.sessions.push_back(session);
  return peer;
}

transport::PeerStatus absent_peer() {
  transport::PeerStatus peer;
  peer.name = "c";
  peer.underlay = {IpAddress::parse("192.0.2.3").value(), 4756, 0};
  peer.prefixes = {prefix("10.99.3.0/24")};
  peer.state = "down";
  transport::SessionStatus session;
  session.index = 1;
  session.worker = 1;
  session.state = "backoff";
  session.last_error = "no answer within 3 s";
  session.since = 500ms;
  peer.sessions.push_back(session);
  return peer;
}

}  // namespace

DaemonStatus example_status() {
  DaemonStatus status;
  status.version = "1.2.3";
  status.pid = 4321;
  status.uptime = 93784s;
  status.underlay = {IpAddress::parse("192.0.2.1").value(), 4755, 0};
  status.tun.config.name = "ipov0";
  status.tun.config.netns = "a";
  status.tun.config.queues = 2;
  status.tun.config.addresses = {prefix("10.99.0.1/24"), prefix("fd99::1/64")};
  status.tun.config.routes = {prefix("10.99.3.0/24")};
  status.tun.state = "up";
  status.tun.queue_packets = 256;
  status.tun.read = {.checksum = true, .tso4 = true, .tso6 = true, .tso_ecn = true, .uso = false};
  status.tun.write = {.checksum = true, .tso4 = true, .tso6 = true, .tso_ecn = true};
  status.tun.withdrawn = {.uso = true};
  status.tun.kernel = tun::Statistics{1, 2, 3, 4, 5, 6, 7, 8};
  status.node.device_state = "up";
  status.node.device = example_capabilities();
  status.node.node_id = 0x0123456789abcdef;
  status.node.mtu = IpMtu(65520);
  status.node.workers = 2;
  status.node.peers = {connected_peer(), absent_peer()};
  status.node.counters = {{"tun_rx_packets", 1000}, {"tx_drop_no_route", 0}, {"rx_error", 1}};
  status.node.doorbells.packets[0] = 30;
  status.node.doorbells.packets[3] = 5;
  status.node.doorbells.bytes[23] = 35;
  status.node.device_counters = {
      {"rx_datagrams", 500}, {"rx_drop_bad_icrc", 2}, {"rx_drop_bad_pad", 0}};
  return status;
}

verbs::DeviceList example_devices() {
  verbs::PortDescription good;
  good.device = "rxe0";
  good.provider = "rdma-core";
  good.link = "RoCE";
  good.state = "ACTIVE";
  good.netdev = "eth0";
  good.gids = {{0, "fe80::1", "IB/RoCE v1"}, {1, "::ffff:192.0.2.1", "RoCE v2"}};
  good.addresses = {IpAddress::parse("192.0.2.1").value(), IpAddress::parse("fe80::1").value()};
  good.capabilities = example_capabilities();
  good.usable = true;
  verbs::PortDescription bad;
  bad.device = "mlx5_0";
  bad.port = 2;
  bad.provider = "rdma-core";
  bad.link = "InfiniBand";
  bad.state = "DOWN";
  bad.why_not = "no provider library; install ibverbs-providers";
  return {{good, bad}, ""};
}

}  // namespace ipoverbs::daemon
