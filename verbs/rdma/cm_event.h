// Connection manager events as values: copied out and acknowledged in one place, so that no path
// can forget it (an event that is not acknowledged makes rdma_destroy_id wait for ever).
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <expected>
#include <span>
#include <string>

#include "verbs/rdma/owners.h"

namespace ipoverbs::verbs {

// What private_data_len, an octet, can say.
inline constexpr std::size_t kMaxPrivateData = 255;

struct CmEvent {
  rdma_cm_event_type type{};
  rdma_cm_id* id = nullptr;  // whose event it is; for CONNECT_REQUEST the listener
  CmIdOwner incoming;        // CONNECT_REQUEST: the new id
  int status = 0;            // negative errno, or the reason of a reject

  [[nodiscard]] std::span<const std::byte> private_data() const {
    return std::span(bytes).first(size);
  }

  std::array<std::byte, kMaxPrivateData> bytes{};
  std::size_t size = 0;
};

// The channel's next event, already acknowledged, or an errno: EAGAIN if there is none now, another
// if the channel is broken. The channel is nonblocking.
[[nodiscard]] std::expected<CmEvent, int> next_cm_event(rdma_event_channel* channel);

// Why the far end, or its kernel, rejected a connection, in words. `status` is the event's: the
// REJ message's reason on InfiniBand and RoCE (IBTA volume 1, table of rejection reasons in 12.6.7;
// include/rdma/ib_cm.h, enum ib_cm_rej_reason), a negative errno on iWARP.
[[nodiscard]] std::string reject_reason(int status);

// An event's negative errno in words.
[[nodiscard]] std::string status_text(int status);

}  // namespace ipoverbs::verbs
