#include "daemon/device_choice.h"

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
  try {
    auto device = verbs::open_rdma_device(request, logger);
    kind_ = DeviceKind::Rdma;
    return device;
  } catch (const UsageError& error) {
    if (request.by_gid) throw;  // the software device has no GID but its addresses
    logger.debug("the software device is tried: {}", error.what());
  }
  auto device = open_soft(request);
  kind_ = DeviceKind::Soft;
  return device;
}

}  // namespace ipoverbs::daemon
