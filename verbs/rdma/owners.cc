#include "verbs/rdma/owners.h"

#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fd.h"

namespace ipoverbs::verbs {

EventChannelOwner make_event_channel() {
  EventChannelOwner channel(rdma_create_event_channel());
  if (!channel) throw SystemError(errno, "open the RDMA connection manager's event channel");
  set_nonblocking(channel->fd);
  return channel;
}

CmIdOwner make_cm_id(rdma_event_channel* channel, void* context) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, context, RDMA_PS_TCP) != 0) {
    throw SystemError(errno, "create a connection manager id");
  }
  return CmIdOwner(id);
}

ProtectionDomainOwner make_protection_domain(ibv_context* context) {
  ProtectionDomainOwner pd(ibv_alloc_pd(context));
  if (!pd) {
    throw SystemError(errno, fmt::format("allocate a protection domain on {}",
                                         ibv_get_device_name(context->device)));
  }
  return pd;
}

void set_byte_option(rdma_cm_id* id, int option, std::uint8_t value, const char* name) {
  if (rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value) != 0) {
    throw SystemError(errno, fmt::format("set the connection's {} to {}", name, value));
  }
}

}  // namespace ipoverbs::verbs
