// Finding and opening RDMA devices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ip.h"
#include "core/log.h"
#include "verbs/device.h"

namespace ipoverbs::verbs {

struct DeviceRequest {
  Endpoint underlay;  // the local underlay address, and its scope; the port is not used
  std::optional<std::string> device;  // must be this device; empty: the one that owns the address
  bool by_gid = false;                // underlay.address is a GID of an InfiniBand port (AF_IB)
  ConnectionTimers timers;
};

// Opens the rdma-core device that owns `request.underlay`. Throws UsageError with one line when
// there can be none (address not on this host; address not on an RDMA device; device of another
// name; no /dev/infiniband/rdma_cm, saying which module brings it; provider library missing, saying
// which package), SystemError when the kernel refuses. May be called again after DeviceRemoved,
// once a second, until the device is back.
[[nodiscard]] std::unique_ptr<Device> open_rdma_device(const DeviceRequest& request,
                                                       Logger& logger);

// One port of one device, for people to read.
struct PortDescription {
  std::string device;
  std::uint8_t port = 1;
  std::string provider;  // "rdma-core" or "soft"
  std::string link;      // "InfiniBand", "RoCE", "iWARP"
  std::string state;     // "ACTIVE", "DOWN", ...
  std::string netdev;    // "" if none
  struct Gid {
    unsigned index = 0;
    std::string gid;
    std::string type;  // "IB/RoCE v1", "RoCE v2"
  };
  std::vector<Gid> gids;             // without the empty ones
  std::vector<IpAddress> addresses;  // of the netdev: usable as underlay
  Capabilities capabilities;
  bool usable = false;
  std::string why_not;  // one line, if not usable
};

// Every port of every RDMA device that the kernel lists, those without a provider library included.
// Never throws for a missing RDMA stack: then the list is empty and `why_empty` says what is
// missing.
struct DeviceList {
  std::vector<PortDescription> ports;
  std::string why_empty;
};
[[nodiscard]] DeviceList list_rdma_devices();

}  // namespace ipoverbs::verbs
