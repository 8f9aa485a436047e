#include "verbs/rdma/cm_event.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace ipoverbs::verbs {

std::expected<CmEvent, int> next_cm_event(rdma_event_channel* channel) {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel, &raw) != 0) {
    return std::unexpected(errno == EINTR ? EAGAIN : errno);
  }
  const CmEventOwner event(raw);
  CmEvent copy;
  copy.type = event->event;
  copy.status = event->status;
  copy.id = event->id;
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    copy.id = event->listen_id;
    copy.incoming.reset(event->id);
  }
  const rdma_conn_param& conn = event->param.conn;
  if (conn.private_data != nullptr) {
    copy.size = std::min<std::size_t>(conn.private_data_len, copy.bytes.size());
    std::ranges::copy(std::span(static_cast<const std::byte*>(conn.private_data), copy.size),
                      copy.bytes.begin());
  }
  return copy;
}

std::string status_text(int status) {
  return std::generic_category().message(status < 0 ? -status : status);
}

std::string reject_reason(int status) {
  if (status < 0) return status_text(status);
  switch (status) {
    case 3:
      return "the far end has no resources left";
    case 4:
      return "the far end timed out";
    case 5:
      return "the far end does not support the request";
    case 8:
      return "nobody listens on the port";
    case 10:
      return "the far end still holds the connection that was before (stale connection)";
    case 28:
      return "rejected by the far end's daemon";
    default:
      return fmt::format("rejected, reason {}", status);
  }
}

}  // namespace ipoverbs::verbs
