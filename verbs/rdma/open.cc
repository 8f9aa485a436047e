#include "verbs/open.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/rdma/address.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/explain.h"
#include "verbs/rdma/host.h"

namespace ipoverbs::verbs {

namespace {
// An id bound to the underlay address, with its channel. Throws SystemError.
struct Bound {
  EventChannelOwner channel;
  CmIdOwner id;
};

Bound bind_underlay(const DeviceRequest& request) {
  Bound bound;
  bound.channel = make_event_channel();
  bound.id = make_cm_id(bound.channel.get(), nullptr);
  Endpoint local = request.underlay;
  local.port = 0;
  sockaddr_storage address = to_cm_address(local, request.by_gid, std::nullopt);
  if (rdma_bind_addr(bound.id.get(), reinterpret_cast<sockaddr*>(&address)) != 0) {
    throw SystemError(errno, fmt::format("bind to {}", local.address.to_string()));
  }
  // A wildcard or loopback address binds to no device.
  if (bound.id->verbs == nullptr) {
    throw SystemError(ENODEV, fmt::format("bind to {}", local.address.to_string()));
  }
  return bound;
}
}  // namespace

std::unique_ptr<Device> open_rdma_device(const DeviceRequest& request, Logger& logger) {
  if (request.device) {
    // Asked before binding: librdmacm would keep the wrong device open, and so in the kernel.
    const std::string other = explain_other_device(request, look_at_host());
    if (!other.empty()) throw UsageError(other);
  }
  Bound bound;
  try {
    bound = bind_underlay(request);
  } catch (const SystemError& error) {
    const std::string why = explain_refusal(request, look_at_host());
    if (!why.empty()) throw UsageError(why);
    throw;
  }
  const std::string name = ibv_get_device_name(bound.id->verbs->device);
  if (request.device && *request.device != name) {
    throw UsageError(fmt::format("device {} was asked for, but librdmacm opens {} for {}",
                                 *request.device, name, request.underlay.address.to_string()));
  }
  return std::make_unique<RdmaDevice>(std::move(bound.channel), std::move(bound.id), request,
                                      logger);
}

}  // namespace ipoverbs::verbs
