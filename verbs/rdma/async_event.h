// Asynchronous events of a device (ibv_get_async_event(3)) as values: copied and acknowledged at
// once, because ibv_destroy_qp waits for its queue pair's events to be acknowledged.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace ipoverbs::verbs {

struct AsyncEvent {
  ibv_event_type type{};
  void* queue_pair_context = nullptr;  // of an event about a queue pair: its qp_context
  std::uint8_t port = 0;               // of an event about a port
};

// What an asynchronous event means to us.
enum class AsyncMeaning : std::uint8_t {
  Nothing,                // for the log at most
  QueuePairFailed,        // this queue pair is of no more use
  DataBeforeEstablished,  // this queue pair received while connecting
  PortDown,
  PortActive,
  DeviceFailed,  // the device, or a queue that everything shares, is of no more use
};
[[nodiscard]] AsyncMeaning meaning_of(ibv_event_type type);

// Makes the descriptor nonblocking. Throws SystemError.
void prepare_async_events(ibv_context* context);

// The next event, already acknowledged; nullopt if there is none now.
[[nodiscard]] std::optional<AsyncEvent> next_async_event(ibv_context* context);

}  // namespace ipoverbs::verbs
