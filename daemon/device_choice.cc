#include "daemon/device_choice.h"

#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/soft/open.h"

namespace ipoverbs::daemon {

std::unique_ptr<verbs::Device> DeviceChoice::open(const verbs::DeviceRequest& request,
                                                  Logger& logger) {
  switch (kind_) {
    case DeviceKind::Auto:
      return decide(request, logger);
    case DeviceKind::Rdma:
      return verbs::open_rdma_device(request, logger);
    case DeviceKind::Soft:
      break;
  }
  return open_soft(request);
}

std::unique_ptr<verbs::Device> DeviceChoice::open_soft(const verbs::DeviceRequest& request) {
  return verbs::soft::open_soft_device(request, {.seed = seed_, .faults = faults_});
}

std::unique_ptr<verbs::Device> DeviceChoice::decide(const verbs::DeviceRequest& request,
                                                    Logger& logger) {
  std::string no_rdma;
  try {
    auto device = verbs::open_rdma_device(request, logger);
    kind_ = DeviceKind::Rdma;
    return device;
  } catch (const UsageError& error) {
    if (request.by_gid) throw;  // the software device has no GID but its addresses
    no_rdma = error.what();
  }
  try {
    auto device = open_soft(request);
    kind_ = DeviceKind::Soft;
    logger.debug("the software device is used: {}", no_rdma);
    return device;
  } catch (const std::runtime_error& error) {
    throw UsageError(
        fmt::format("{}; and the software device cannot be used: {}", no_rdma, error.what()));
  }
}

}  // namespace ipoverbs::daemon
