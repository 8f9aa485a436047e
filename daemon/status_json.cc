#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/status_report.h"

namespace ipoverbs::daemon {

namespace {

using Json = nlohmann::ordered_json;

double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Json to_json(const std::vector<Prefix>& prefixes) {
  Json json = Json::array();
  for (const Prefix& prefix : prefixes) json.push_back(prefix.to_string());
  return json;
}

Json to_json(const tun::Offloads& offloads) {
  return {{"checksum", offloads.checksum},
          {"tso4", offloads.tso4},
          {"tso6", offloads.tso6},
          {"tso_ecn", offloads.tso_ecn},
          {"uso", offloads.uso}};
}

Json to_json(const tun::Statistics& kernel) {
  return {{"rx_packets", kernel.rx_packets}, {"rx_bytes", kernel.rx_bytes},
          {"rx_errors", kernel.rx_errors},   {"rx_dropped", kernel.rx_dropped},
          {"tx_packets", kernel.tx_packets}, {"tx_bytes", kernel.tx_bytes},
          {"tx_errors", kernel.tx_errors},   {"tx_dropped", kernel.tx_dropped}};
}

Json to_json(const TunReport& tun) {
  return {{"name", tun.config.name},
          {"netns", tun.config.netns},
          {"state", tun.state},
          {"mtu", tun.config.mtu.value()},
          {"addresses", to_json(tun.config.addresses)},
          {"routes", to_json(tun.config.routes)},
          {"queues", tun.config.queues},
          {"queue_packets", tun.queue_packets},
          {"read_offloads", to_json(tun.read)},
          {"write_offloads", to_json(tun.write)},
          {"withdrawn_offloads", to_json(tun.withdrawn)},
          {"kernel", tun.kernel ? to_json(*tun.kernel) : Json(nullptr)}};
}

Json to_json(const verbs::Capabilities& device, const std::string& state) {
  return {{"name", device.device},
          {"state", state},
          {"provider", device.provider},
          {"link", device.link},
          {"port", device.port},
          {"path_mtu", device.active_mtu.value()},
          {"max_message", device.max_message},
          {"max_qp_wr", device.max_qp_wr},
          {"max_cqe", device.max_cqe},
          {"max_send_sge", device.max_send_sge},
          {"max_recv_sge", device.max_recv_sge},
          {"max_srq_wr", device.max_srq_wr},
          {"max_srq_sge", device.max_srq_sge}};
}

Json to_json(const transport::SessionStatus& session) {
  return {{"index", session.index},
          {"worker", session.worker},
          {"state", session.state},
          {"since_s", to_seconds(session.since)},
          {"established_count", session.established_count},
          {"last_error", session.last_error},
          {"queue_pair", session.queue_pair.value()},
          {"path_mtu", session.path_mtu.value()},
          {"send_credits", session.send_credits},
          {"receive_share", session.receive_share},
          {"queued_packets", session.queued_packets}};
}

Json to_json(const transport::PeerStatus& peer) {
  Json sessions = Json::array();
  for (const auto& session : peer.sessions) sessions.push_back(to_json(session));
  return {{"name", peer.name},
          {"underlay", peer.underlay.to_string()},
          {"prefixes", to_json(peer.prefixes)},
          {"state", peer.state},
          {"mtu", peer.mtu.value()},
          {"tx_packets", peer.tx_packets},
          {"tx_bytes", peer.tx_bytes},
          {"rx_packets", peer.rx_packets},
          {"rx_bytes", peer.rx_bytes},
          {"sessions", sessions}};
}

Json to_json(const std::vector<transport::CounterValue>& counters) {
  Json json = Json::object();
  for (const auto& counter : counters) json[std::string(counter.name)] = counter.value;
  return json;
}

// [{"from": 1024, "count": 7}]: seven had 1024 to 2047. Sizes that never were are left out.
Json to_json(const transport::SizeHistogram::Counts& counts) {
  Json json = Json::array();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) json.push_back({{"from", std::uint64_t{1} << i}, {"count", counts[i]}});
  }
  return json;
}

}  // namespace

std::string format_status_json(const DaemonStatus& status) {
  Json peers = Json::array();
  for (const auto& peer : status.node.peers) peers.push_back(to_json(peer));
  const Json json{
      {"version", status.version},
      {"pid", status.pid},
      {"uptime_s", to_seconds(status.uptime)},
      {"node_id", fmt::format("{:016x}", status.node.node_id)},
      {"mtu", status.node.mtu.value()},
      {"workers", status.node.workers},
      {"underlay",
       {{"address", status.underlay.address.to_string()}, {"port", status.underlay.port}}},
      {"device", to_json(status.node.device, status.node.device_state)},
      {"tun", to_json(status.tun)},
      {"peers", peers},
      {"counters", to_json(status.node.counters)},
      {"doorbell_packets", to_json(status.node.doorbells.packets)},
      {"doorbell_bytes", to_json(status.node.doorbells.bytes)},
      {"device_counters", to_json(status.node.device_counters)},
  };
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace ipoverbs::daemon
