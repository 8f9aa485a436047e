#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/status_report.h"
#include "daemon/text_table.h"

namespace ipoverbs::daemon {

namespace {

using Row = std::vector<std::string>;

std::string join(const std::vector<Prefix>& prefixes) {
  std::vector<std::string> texts;
  for (const Prefix& prefix : prefixes) texts.push_back(prefix.to_string());
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string join(const tun::Offloads& offloads) {
  std::vector<std::string_view> names;
  if (offloads.checksum) names.emplace_back("checksum");
  if (offloads.tso4) names.emplace_back("tso4");
  if (offloads.tso6) names.emplace_back("tso6");
  if (offloads.tso_ecn) names.emplace_back("tso_ecn");
  if (offloads.uso) names.emplace_back("uso");
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

// "5 s", "3 min 5 s", "2 h 3 min", "4 d 2 h".
std::string format_age(Duration age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds / 3600 % 24);
}

std::string format_device(const transport::Status& node) {
  const verbs::Capabilities& device = node.device;
  if (device.device.empty()) return node.device_state;
  return fmt::format("{} port {}, {} by {}, path MTU {}: {}", device.device, device.port,
                     device.link, device.provider, device.active_mtu.value(), node.device_state);
}

std::string format_tun(const TunReport& tun) {
  return fmt::format("{}{}, MTU {}, {} x {} packets: {}", tun.config.name,
                     tun.config.netns.empty() ? "" : fmt::format(" in {}", tun.config.netns),
                     tun.config.mtu.value(), tun.config.queues, tun.queue_packets, tun.state);
}

std::string format_head(const DaemonStatus& status) {
  const TunReport& tun = status.tun;
  std::string text = format_table({
      {"ipoverbs", fmt::format("{}, pid {}, up {}, node {:016x}", status.version, status.pid,
                               format_age(status.uptime), status.node.node_id)},
      {"underlay", status.underlay.to_string()},
      {"device", format_device(status.node)},
      {"tun", format_tun(tun)},
      {"addresses", join(tun.config.addresses)},
      {"routes", join(tun.config.routes)},
      {"offloads", fmt::format("read: {}; write: {}", join(tun.read), join(tun.write))},
      {"workers", fmt::format("{}", status.node.workers)},
  });
  if (tun.withdrawn != tun::Offloads{}) {
    text += fmt::format("withdrawn, the kernel having refused them, and done in software: {}\n",
                        join(tun.withdrawn));
  }
  if (tun.kernel && tun.kernel->tx_dropped > 0) {
    text += fmt::format("dropped by the kernel, the interface's queue being full: {}\n",
                        tun.kernel->tx_dropped);
  }
  return text;
}

std::string format_peers(const std::vector<transport::PeerStatus>& peers) {
  std::vector<Row> rows{{"PEER", "UNDERLAY", "STATE", "MTU", "TX PACKETS", "TX BYTES", "RX PACKETS",
                         "RX BYTES", "PREFIXES"}};
  for (const auto& peer : peers) {
    rows.push_back({peer.name, peer.underlay.to_string(), peer.state,
                    fmt::format("{}", peer.mtu.value()), fmt::format("{}", peer.tx_packets),
                    fmt::format("{}", peer.tx_bytes), fmt::format("{}", peer.rx_packets),
                    fmt::format("{}", peer.rx_bytes), join(peer.prefixes)});
  }
  return "\npeers (tx: sent to the peer, rx: delivered from it)\n" + format_table(rows, "  ");
}

Row format_session(const std::string& peer, const transport::SessionStatus& session) {
  const bool stands = session.state == "established";
  const auto if_stands = [&](std::uint32_t number) {
    return stands ? fmt::format("{}", number) : std::string();
  };
  return {peer,
          fmt::format("{}", session.index),
          fmt::format("{}", session.worker),
          session.state,
          format_age(session.since),
          fmt::format("{}", session.established_count),
          stands ? fmt::format("{:#x}", session.queue_pair.value()) : std::string(),
          if_stands(session.path_mtu.value()),
          if_stands(session.send_credits),
          if_stands(session.receive_share),
          if_stands(session.queued_packets),
          session.last_error};
}

std::string format_sessions(const std::vector<transport::PeerStatus>& peers) {
  std::vector<Row> rows{{"PEER", "INDEX", "WORKER", "STATE", "SINCE", "TIMES", "QP", "PATH MTU",
                         "CREDITS", "SHARE", "QUEUED", "LAST ERROR"}};
  for (const auto& peer : peers) {
    for (const auto& session : peer.sessions) rows.push_back(format_session(peer.name, session));
  }
  return "\nsessions\n" + format_table(rows, "  ");
}

std::string format_counters(const char* title,
                            const std::vector<transport::CounterValue>& counters) {
  std::vector<Row> rows;
  for (const auto& counter : counters) {
    if (counter.value == 0) continue;
    rows.push_back({std::string(counter.name), fmt::format("{}", counter.value)});
  }
  return fmt::format("\n{} that are not zero (--json shows all)\n", title) +
         format_table(rows, "  ");
}

}  // namespace

std::string format_status_text(const DaemonStatus& status) {
  const transport::Status& node = status.node;
  std::string text = format_head(status) + format_peers(node.peers) + format_sessions(node.peers) +
                     format_counters("counters", node.counters);
  if (!node.device_counters.empty()) {
    text += format_counters("counters of the device", node.device_counters);
  }
  return text;
}

}  // namespace ipoverbs::daemon
