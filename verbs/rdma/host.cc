#include "verbs/rdma/host.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "core/fd.h"
#include "verbs/rdma/owners.h"

namespace ipoverbs::verbs {

namespace {
constexpr const char* kConnectionManager = "/dev/infiniband/rdma_cm";

std::vector<InterfaceAddress> host_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const Owner<ifaddrs, ::freeifaddrs> list(first);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* a = first; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr) continue;
    if (const auto endpoint = Endpoint::from_sockaddr(*a->ifa_addr)) {
      all.push_back({a->ifa_name, endpoint->address, ::if_nametoindex(a->ifa_name)});
    }
  }
  return all;
}

std::vector<std::string> drivable_devices() {
  int count = 0;
  const DeviceListOwner list(ibv_get_device_list(&count));
  std::vector<std::string> names;
  for (int i = 0; list && i < count; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  return names;
}

// RoCE's and iWARP's GID of an IP address: itself, or its IPv4-mapped form (IBTA annex A17).
IpAddress gid_of(const IpAddress& address) {
  if (!address.is_v4()) return address;
  std::array<std::byte, 16> bytes{};
  bytes[10] = bytes[11] = std::byte{0xff};
  std::ranges::copy(address.bytes(), bytes.begin() + 12);
  return IpAddress::v6(bytes);
}

int error_of_opening(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file ? 0 : errno;
}

// Why a device file cannot be used, and what brings it.
std::string why_not_opened(const std::string& path, int error, const char* remedy) {
  if (error == ENOENT || error == ENXIO || error == ENODEV) {
    return fmt::format("there is no {}: {}, or pass the file into the container", path, remedy);
  }
  return fmt::format("cannot open {}: {}", path, std::generic_category().message(error));
}
}  // namespace

Host look_at_host() {
  Host host;
  host.addresses = host_addresses();
  host.rdma_in_kernel = std::filesystem::exists("/sys/class/infiniband");
  host.devices = read_kernel_devices("/sys");
  host.drivable = drivable_devices();
  for (KernelDevice& device : host.devices) {
    device.uverbs_error = error_of_opening("/dev/infiniband/" + device.uverbs);
  }
  host.connection_manager_error = error_of_opening(kConnectionManager);
  return host;
}

ServedBy who_serves(const Host& host, const InterfaceAddress& address) {
  const IpAddress gid = gid_of(address.address);
  ServedBy by_interface;
  for (const KernelDevice& device : host.devices) {
    for (const KernelPort& port : device.ports) {
      for (const KernelGid& g : port.gids) {
        if (g.gid == gid && g.netdev == address.interface) return {&device, &port};
      }
      if (port.netdev == address.interface) by_interface = {&device, &port};
    }
  }
  return by_interface;
}

std::string why_no_rdma(const Host& host, const std::string& interface) {
  const char* lack = !host.rdma_in_kernel   ? "the kernel has no RDMA (ib_core is not loaded)"
                     : host.devices.empty() ? "there is no RDMA device"
                                            : nullptr;
  if (lack != nullptr) {
    return fmt::format(
        "{}; SoftRoCE brings it: 'modprobe rdma_rxe', then 'rdma link add rxe0 type rxe netdev {}'",
        lack, interface);
  }
  if (host.connection_manager_error == 0) return "";
  return why_not_opened(kConnectionManager, host.connection_manager_error, "'modprobe rdma_ucm'");
}

std::string why_not_usable(const Host& host, const KernelDevice& device) {
  if (device.uverbs.empty()) {
    return fmt::format("{} is not open to programs: 'modprobe ib_uverbs'", device.name);
  }
  if (device.uverbs_error != 0) {
    return why_not_opened("/dev/infiniband/" + device.uverbs, device.uverbs_error,
                          "'modprobe ib_uverbs'");
  }
  if (std::ranges::find(host.drivable, device.name) != host.drivable.end()) return "";
  return fmt::format(
      "libibverbs has no provider library for {}: install the package ibverbs-providers",
      device.name);
}

}  // namespace ipoverbs::verbs
