// DeviceChoice: which device `device = auto` means, and opening it again when it was removed.
//
// An address that belongs to an RDMA device is used through it; any other through the software
// device. The choice is made once, when the daemon starts: a device that was removed is waited for,
// not replaced by the other kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/log.h"
#include "verbs/device.h"
#include "verbs/open.h"
#include "verbs/soft/fault_plan.h"

namespace ipoverbs::daemon {

enum class DeviceKind : std::uint8_t { Auto, Rdma, Soft };

class DeviceChoice {
 public:
  // `seed`: random, of this start of the process. `faults`: what the software device does to its
  // packets.
  DeviceChoice(DeviceKind kind, std::uint64_t seed, std::optional<verbs::soft::FaultPlan> faults)
      : kind_(kind), seed_(seed), faults_(std::move(faults)) {}

  // Throws UsageError, in which both refusals are told if neither kind of device will do, and
  // SystemError.
  [[nodiscard]] std::unique_ptr<verbs::Device> open(const verbs::DeviceRequest& request,
                                                    Logger& logger);

 private:
  [[nodiscard]] std::unique_ptr<verbs::Device> open_soft(const verbs::DeviceRequest& request);
  [[nodiscard]] std::unique_ptr<verbs::Device> decide(const verbs::DeviceRequest& request,
                                                      Logger& logger);

  DeviceKind kind_;
  std::uint64_t seed_;
  std::optional<verbs::soft::FaultPlan> faults_;
};

}  // namespace ipoverbs::daemon
