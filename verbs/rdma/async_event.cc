#include "verbs/rdma/async_event.h"

#include "core/fd.h"

namespace ipoverbs::verbs {

AsyncMeaning meaning_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return AsyncMeaning::QueuePairFailed;
    case IBV_EVENT_COMM_EST:
      return AsyncMeaning::DataBeforeEstablished;
    case IBV_EVENT_PORT_ERR:
      return AsyncMeaning::PortDown;
    case IBV_EVENT_PORT_ACTIVE:
      return AsyncMeaning::PortActive;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return AsyncMeaning::DeviceFailed;
    default:
      return AsyncMeaning::Nothing;
  }
}

void prepare_async_events(ibv_context* context) { set_nonblocking(context->async_fd); }

std::optional<AsyncEvent> next_async_event(ibv_context* context) {
  ibv_async_event event{};
  if (ibv_get_async_event(context, &event) != 0) return std::nullopt;
  AsyncEvent copy;
  copy.type = event.event_type;
  switch (meaning_of(event.event_type)) {
    case AsyncMeaning::QueuePairFailed:
    case AsyncMeaning::DataBeforeEstablished:
      copy.queue_pair_context = event.element.qp->qp_context;
      break;
    case AsyncMeaning::PortDown:
    case AsyncMeaning::PortActive:
      copy.port = static_cast<std::uint8_t>(event.element.port_num);
      break;
    default:
      break;
  }
  ibv_ack_async_event(&event);
  return copy;
}

}  // namespace ipoverbs::verbs
