#include "daemon/devices_report.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "daemon/text_table.h"

namespace ipoverbs::daemon {

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> to_text(const std::vector<IpAddress>& addresses) {
  std::vector<std::string> texts;
  for (const IpAddress& address : addresses) texts.push_back(address.to_string());
  return texts;
}

std::string format_limits(const verbs::Capabilities& limits) {
  const std::string srq = limits.has_srq() ? fmt::format("{} receives of {} SGEs",
                                                         limits.max_srq_wr, limits.max_srq_sge)
                                           : "none";
  return fmt::format(
      "message {} bytes, {} work requests a queue, {} completions, SGEs {} send {} receive, "
      "shared receive queue {}",
      limits.max_message, limits.max_qp_wr, limits.max_cqe, limits.max_send_sge,
      limits.max_recv_sge, srq);
}

std::string format_port(const verbs::PortDescription& port) {
  const std::uint32_t path_mtu = port.capabilities.active_mtu.value();
  std::vector<std::vector<std::string>> rows{
      {"link", fmt::format("{} by {}", port.link, port.provider)},
      {"state", port.state},
      {"interface", port.netdev},
      {"addresses", fmt::format("{}", fmt::join(to_text(port.addresses), " "))},
      {"path MTU", path_mtu == 0 ? "" : fmt::format("{}", path_mtu)},
      {"limits", port.capabilities.max_message == 0 ? "" : format_limits(port.capabilities)},
  };
  for (const auto& gid : port.gids) {
    rows.push_back({fmt::format("GID {}", gid.index), fmt::format("{} ({})", gid.gid, gid.type)});
  }
  return fmt::format("{} port {}: {}\n{}", port.device, port.port,
                     port.usable ? "usable" : "not usable: " + port.why_not,
                     format_table(rows, "  "));
}

Json to_json(const verbs::PortDescription& port) {
  Json gids = Json::array();
  for (const auto& gid : port.gids) {
    gids.push_back({{"index", gid.index}, {"gid", gid.gid}, {"type", gid.type}});
  }
  const verbs::Capabilities& limits = port.capabilities;
  return {{"device", port.device},
          {"port", port.port},
          {"provider", port.provider},
          {"link", port.link},
          {"state", port.state},
          {"interface", port.netdev},
          {"addresses", to_text(port.addresses)},
          {"gids", gids},
          {"path_mtu", limits.active_mtu.value()},
          {"max_message", limits.max_message},
          {"max_qp_wr", limits.max_qp_wr},
          {"max_cqe", limits.max_cqe},
          {"max_send_sge", limits.max_send_sge},
          {"max_recv_sge", limits.max_recv_sge},
          {"max_srq_wr", limits.max_srq_wr},
          {"max_srq_sge", limits.max_srq_sge},
          {"usable", port.usable},
          {"why_not", port.why_not}};
}

}  // namespace

std::string format_devices_text(const verbs::DeviceList& devices) {
  if (devices.ports.empty()) return fmt::format("no RDMA device: {}\n", devices.why_empty);
  std::string text;
  if (!devices.why_empty.empty()) text = fmt::format("no RDMA device: {}\n", devices.why_empty);
  for (const auto& port : devices.ports) text += format_port(port);
  return text;
}

std::string format_devices_json(const verbs::DeviceList& devices) {
  Json ports = Json::array();
  for (const auto& port : devices.ports) ports.push_back(to_json(port));
  const Json json{{"ports", ports}, {"why_empty", devices.why_empty}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace ipoverbs::daemon
