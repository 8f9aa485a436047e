// What this host has, for messages and lists: its addresses, the RDMA devices that the kernel
// knows, and which of them libibverbs can drive. Reads only; nothing is opened for longer than the
// look.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/ip.h"

namespace ipoverbs::verbs {

struct InterfaceAddress {
  std::string interface;
  IpAddress address;
  std::uint32_t index = 0;  // the interface's, which is the scope of a link-local address
};

struct KernelGid {
  unsigned index = 0;
  IpAddress gid;       // a GID has the form of an IPv6 address
  std::string type;    // "IB/RoCE v1", "RoCE v2"
  std::string netdev;  // "" on InfiniBand
};

struct KernelPort {
  std::uint8_t number = 1;
  std::string state;       // "ACTIVE", "DOWN", ...
  std::string link_layer;  // "Ethernet", "InfiniBand"
  std::string netdev;      // whose addresses are the port's; "" if none
  std::vector<KernelGid> gids;
};

struct KernelDevice {
  std::string name;
  bool iwarp = false;
  std::string uverbs;    // its file in /dev/infiniband, "uverbs0"; "" if it has none
  int uverbs_error = 0;  // errno of opening that, 0 if it opens; look_at_host() tries
  std::vector<KernelPort> ports;
};

// /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband), in the order of names.
// Empty if there is none. `sysfs` is "/sys" but in tests.
[[nodiscard]] std::vector<KernelDevice> read_kernel_devices(const std::filesystem::path& sysfs);

struct Host {
  std::vector<InterfaceAddress> addresses;
  bool rdma_in_kernel = false;  // /sys/class/infiniband is there
  std::vector<KernelDevice> devices;
  std::vector<std::string> drivable;  // devices that libibverbs lists
  int connection_manager_error = 0;   // errno of opening /dev/infiniband/rdma_cm, 0 if it opens
};
[[nodiscard]] Host look_at_host();

// The port that serves an address: it has the address's GID (RoCE, iWARP), or its netdev is the
// address's interface. Null if there is none.
struct ServedBy {
  const KernelDevice* device = nullptr;
  const KernelPort* port = nullptr;
};
[[nodiscard]] ServedBy who_serves(const Host& host, const InterfaceAddress& address);

// Why nobody can use the RDMA stack of this host at all, one line; "" if somebody can. What it says
// comes before any question about a single device. `interface` is what SoftRoCE would stand on.
[[nodiscard]] std::string why_no_rdma(const Host& host, const std::string& interface);
// Why `device` cannot be used, whatever its port's state; "" if it can.
[[nodiscard]] std::string why_not_usable(const Host& host, const KernelDevice& device);

}  // namespace ipoverbs::verbs
