// Opening the software device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "verbs/device.h"
#include "verbs/open.h"
#include "verbs/soft/fault_plan.h"

namespace ipoverbs::verbs::soft {

struct SoftOptions {
  // Another one for every start of a process: from it come queue pair numbers, PSNs, communication
  // IDs and the CA GUID, by which the far end tells a new connection from an old one.
  std::uint64_t seed = 0;
  std::optional<FaultPlan> faults;
};

// The software device on `request.underlay`. `request.device` and `by_gid` are not looked at.
// Throws UsageError when no interface of this host has the address, SystemError when the kernel
// refuses: EADDRINUSE when another process or rdma_rxe has port 4791 there. Needs no privilege; a
// process that has CAP_NET_ADMIN gets larger socket buffers.
[[nodiscard]] std::unique_ptr<Device> open_soft_device(const DeviceRequest& request,
                                                       const SoftOptions& options);

// Its entry in a list of devices, with the addresses of this host that it could stand on: those of
// all interfaces but loopback.
[[nodiscard]] PortDescription describe_soft_device();

}  // namespace ipoverbs::verbs::soft
