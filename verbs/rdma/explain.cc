#include "verbs/rdma/explain.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ipoverbs::verbs {

namespace {
const InterfaceAddress* find_address(const Host& host, const Endpoint& underlay) {
  const auto found = std::ranges::find_if(host.addresses, [&](const InterfaceAddress& a) {
    return a.address == underlay.address && (underlay.scope == 0 || a.index == underlay.scope);
  });
  return found == host.addresses.end() ? nullptr : &*found;
}

// "10.77.0.1 (rxe0), fd77::1 (rxe0)": what could have been meant.
std::string usable_addresses(const Host& host) {
  std::vector<std::string> all;
  for (const InterfaceAddress& a : host.addresses) {
    const ServedBy served = who_serves(host, a);
    if (served.device == nullptr || a.address.is_link_local()) continue;
    all.push_back(fmt::format("{} ({})", a.address.to_string(), served.device->name));
  }
  return all.empty() ? "" : fmt::format("; RDMA devices have {}", fmt::join(all, ", "));
}

std::string explain_gid(const DeviceRequest& request, const Host& host) {
  std::vector<std::string> all;
  for (const KernelDevice& device : host.devices) {
    for (const KernelPort& port : device.ports) {
      for (const KernelGid& g : port.gids) {
        if (g.gid == request.underlay.address) {
          if (port.link_layer == "InfiniBand") return why_not_usable(host, device);
          return fmt::format(
              "underlay GID {} is on {}, which is not InfiniBand: name it by its IP address",
              g.gid.to_string(), device.name);
        }
        all.push_back(fmt::format("{} ({})", g.gid.to_string(), device.name));
      }
    }
  }
  return fmt::format("underlay GID {} is on no RDMA device of this host, which has {}",
                     request.underlay.address.to_string(),
                     all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", ")));
}

std::string explain_interface(const InterfaceAddress& address, const Host& host) {
  const std::string which = fmt::format("underlay address {} is on interface {}",
                                        address.address.to_string(), address.interface);
  const ServedBy served = who_serves(host, address);
  if (served.device == nullptr) {
    return fmt::format(
        "{}, which no RDMA device serves; SoftRoCE can: 'modprobe rdma_rxe', then 'rdma link add "
        "rxe0 type rxe netdev {}'{}",
        which, address.interface, usable_addresses(host));
  }
  const std::string device = why_not_usable(host, *served.device);
  if (!device.empty()) return fmt::format("{}, but {}", which, device);
  if (served.port->state != "ACTIVE") {
    return fmt::format("{}, but port {} of {} is {}", which, served.port->number,
                       served.device->name, served.port->state);
  }
  return "";
}
}  // namespace

std::string explain_refusal(const DeviceRequest& request, const Host& host) {
  const IpAddress& address = request.underlay.address;
  if (request.by_gid) {
    const std::string stack = why_no_rdma(host, "INTERFACE");
    return stack.empty() ? explain_gid(request, host)
                         : fmt::format("underlay GID {}: {}", address.to_string(), stack);
  }
  if (!address.is_v4() && address.is_link_local() && request.underlay.scope == 0) {
    return fmt::format(
        "underlay address {} is link-local and needs its interface: write {}%INTERFACE",
        address.to_string(), address.to_string());
  }
  const InterfaceAddress* found = find_address(host, request.underlay);
  if (found == nullptr) {
    return fmt::format("underlay address {} is not an address of this host{}", address.to_string(),
                       usable_addresses(host));
  }
  const std::string stack = why_no_rdma(host, found->interface);
  if (stack.empty()) return explain_interface(*found, host);
  return fmt::format("underlay address {} is on interface {}, but {}", address.to_string(),
                     found->interface, stack);
}

std::string explain_other_device(const DeviceRequest& request, const Host& host) {
  const InterfaceAddress* found = find_address(host, request.underlay);
  if (!request.device || request.by_gid || found == nullptr) return "";
  const KernelDevice* device = who_serves(host, *found).device;
  if (device == nullptr || device->name == *request.device) return "";
  return fmt::format("device {} was asked for, but the underlay address {} is on {}",
                     *request.device, request.underlay.address.to_string(), device->name);
}

}  // namespace ipoverbs::verbs
