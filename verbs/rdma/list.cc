// list_rdma_devices(): for people, from /sys and libibverbs.
#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/open.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/host.h"

namespace ipoverbs::verbs {

namespace {
// Opens the device for a moment. A device that cannot be asked has the Capabilities of none.
Capabilities ask(const std::string& name, std::uint8_t port) {
  const DeviceListOwner list(ibv_get_device_list(nullptr));
  for (ibv_device** d = list.get(); d != nullptr && *d != nullptr; ++d) {
    if (ibv_get_device_name(*d) != name) continue;
    const ContextOwner context(ibv_open_device(*d));
    if (context) return probe_capabilities(context.get(), port);
  }
  return {};
}

std::string link_of(const KernelDevice& device, const KernelPort& port) {
  if (device.iwarp) return "iWARP";
  return port.link_layer == "Ethernet" ? "RoCE" : "InfiniBand";
}

std::string why_not(const Host& host, const KernelDevice& device, const PortDescription& port) {
  if (std::string why = why_no_rdma(host, "INTERFACE"); !why.empty()) return why;
  if (std::string why = why_not_usable(host, device); !why.empty()) return why;
  if (port.capabilities.device.empty()) return "the device cannot be opened";
  if (port.state != "ACTIVE") return fmt::format("the port is {}", port.state);
  // InfiniBand does without: AF_IB.
  if (port.addresses.empty() && port.link != "InfiniBand") {
    return port.netdev.empty() ? "the port has no network interface"
                               : fmt::format("{} has no IP address", port.netdev);
  }
  return "";
}

PortDescription describe(const Host& host, const KernelDevice& device, const KernelPort& port) {
  PortDescription d;
  d.device = device.name;
  d.port = port.number;
  d.provider = "rdma-core";
  d.link = link_of(device, port);
  d.state = port.state;
  d.netdev = port.netdev;
  for (const KernelGid& g : port.gids) d.gids.push_back({g.index, g.gid.to_string(), g.type});
  for (const InterfaceAddress& a : host.addresses) {
    const ServedBy served = who_serves(host, a);
    if (served.device == &device && served.port == &port) d.addresses.push_back(a.address);
  }
  try {
    d.capabilities = ask(device.name, port.number);
  } catch (const SystemError&) {
    // Gone, or refused, between the look and the question: why_not says so.
  }
  d.why_not = why_not(host, device, d);
  d.usable = d.why_not.empty();
  return d;
}
}  // namespace

DeviceList list_rdma_devices() {
  const Host host = look_at_host();
  DeviceList list;
  for (const KernelDevice& device : host.devices) {
    for (const KernelPort& port : device.ports) list.ports.push_back(describe(host, device, port));
  }
  if (list.ports.empty()) list.why_empty = why_no_rdma(host, "INTERFACE");
  return list;
}

}  // namespace ipoverbs::verbs
