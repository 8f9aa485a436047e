#include "verbs/soft/open.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fd.h"
#include "verbs/soft/device.h"

namespace ipoverbs::verbs::soft {

namespace {

struct HostAddress {
  std::string interface;
  IpAddress address;
  bool loopback = false;
};

std::vector<HostAddress> host_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw SystemError(errno, "list the interfaces' addresses");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<HostAddress> addresses;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    if (const auto endpoint = Endpoint::from_sockaddr(*one->ifa_addr)) {
      addresses.push_back({one->ifa_name, endpoint->address, (one->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return addresses;
}

IpMtu interface_mtu(const std::string& interface) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  if (!fd || ::ioctl(fd.get(), SIOCGIFMTU, &request) != 0) {
    throw SystemError(errno, fmt::format("read the MTU of {}", interface));
  }
  return IpMtu(static_cast<std::uint32_t>(request.ifr_mtu));
}

}  // namespace

std::unique_ptr<Device> open_soft_device(const DeviceRequest& request, const SoftOptions& options) {
  const auto addresses = host_addresses();
  const auto found = std::ranges::find(addresses, request.underlay.address, &HostAddress::address);
  if (found == addresses.end()) {
    throw UsageError(fmt::format("underlay address {} is on no interface of this host",
                                 request.underlay.address.to_string()));
  }
  return std::make_unique<SoftDevice>(request, interface_mtu(found->interface), options);
}

PortDescription describe_soft_device() {
  PortDescription port;
  port.device = "soft";
  port.provider = "soft";
  port.link = "RoCE";
  port.state = "ACTIVE";
  for (const HostAddress& one : host_addresses()) {
    if (!one.loopback) port.addresses.push_back(one.address);
  }
  port.capabilities = soft_capabilities(IpMtu(kMaxPathMtu * 2));
  port.usable = !port.addresses.empty();
  if (!port.usable) port.why_not = "no interface but loopback has an address";
  return port;
}

}  // namespace ipoverbs::verbs::soft
