#include "verbs/open.h"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/rdma/address.h"
#include "verbs/rdma/device.h"

namespace ipoverbs::verbs {

std::unique_ptr<Device> open_rdma_device(const DeviceRequest& request, Logger& logger) {
  EventChannelOwner channel = make_event_channel();
  CmIdOwner id = make_cm_id(channel.get(), nullptr);
  Endpoint local = request.underlay;
  local.port = 0;
  sockaddr_storage address = to_cm_address(local, request.by_gid, std::nullopt);
  if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&address)) != 0) {
    throw UsageError(fmt::format("underlay address {} is not on an RDMA device",
                                 request.underlay.address.to_string()));
  }
  if (id->verbs == nullptr) {
    throw UsageError(fmt::format("underlay address {} names no RDMA device",
                                 request.underlay.address.to_string()));
  }
  return std::make_unique<RdmaDevice>(std::move(channel), std::move(id), request, logger);
}

}  // namespace ipoverbs::verbs
