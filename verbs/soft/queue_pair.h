// QueuePair: the object behind an ibv_qp: queues, states, and the two halves of the connection.
//
// States as of ibv_modify_qp(3), of which these are used: INIT (receives may be posted, nothing is
// heard), RTR (connect_receive(): requests are executed and answered), RTS (connect_send()), ERR.
// In ERR nothing is heard or sent any more, but for the NAK that told why; everything posted, then
// or later, completes as flushed, after the request that was at fault: sends first, then a receive
// that was taken for a message, then the receives of a queue of its own. Those of a shared queue
// stay there.
//
// One thread at a time: the worker that owns its completion queue (verbs/soft/engine.h).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "verbs/soft/burst.h"
#include "verbs/soft/completion_ring.h"
#include "verbs/soft/inbound.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/path.h"
#include "verbs/soft/requester.h"
#include "verbs/soft/responder.h"
#include "verbs/soft/roce.h"
#include "verbs/soft/wire.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

struct QueuePairSetup {
  QpNumber number;
  std::uint32_t send_depth = 0;
  std::uint32_t receive_depth = 0;  // ignored with `shared`
  std::uint32_t send_sge = 1;
  std::uint32_t receive_sge = 1;
  std::uint32_t max_inline = 0;
  bool signal_all = false;
  ReceiveQueue* shared = nullptr;  // outlives the queue pair
  // For the verbs structure; may be null.
  ibv_context* context = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
};

// ibv_qp is the base so that the pointer that the verbs hand back can be cast.
class QueuePair : public ibv_qp {
 public:
  // `completions` and `memory` outlive the queue pair.
  QueuePair(const QueuePairSetup& setup, CompletionRing& completions, const MemoryTable& memory);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair() = default;

  // INIT -> RTR -> RTS. The path's remote address is the only one that is listened to.
  void connect_receive(const Path& path, const ResponderConfig& config);
  void connect_send(const RequesterConfig& config);
  // Any state -> ERR.
  void to_error() noexcept;
  void set_min_rnr_timer(std::uint8_t code) { responder_.set_min_rnr_timer(code); }

  // As ibv_post_send(3): 0, or an errno value and `*bad` the first request not taken.
  int post_send(ibv_send_wr* list, ibv_send_wr** bad) noexcept;
  int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad) noexcept;

  // A packet whose ICRC is not checked yet is the `i`-th datagram of `received`. nullopt: it was
  // taken.
  [[nodiscard]] std::optional<Reject> receive(const Packet& packet, const Received& received,
                                              std::size_t i, TimePoint now) noexcept;
  void transmit(TimePoint now, Burst& burst) noexcept;
  void on_timer(TimePoint now) noexcept;
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept;

  [[nodiscard]] QpNumber number() const noexcept { return QpNumber(qp_num); }
  // Why it is in ERR; IBV_WC_SUCCESS: because it was told to.
  [[nodiscard]] ibv_wc_status cause() const noexcept { return cause_; }
  // Whether a request of the other side has been executed: the connection is established.
  [[nodiscard]] bool heard() const noexcept { return responder_.counters().packets > 0; }
  [[nodiscard]] const Requester& requester() const noexcept { return requester_; }
  [[nodiscard]] const Responder& responder() const noexcept { return responder_; }
  [[nodiscard]] const Path& path() const noexcept { return path_; }

  // The engine's.
  bool touched = false;              // it is on its list
  RequesterCounters sent_counted{};  // what its totals hold already
  ResponderCounters received_counted{};

 private:
  [[nodiscard]] bool connected() const noexcept {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
  }
  void fail(ibv_wc_status send, ibv_wc_status receive) noexcept;
  void flush_receives() noexcept;
  void take(const Packet& packet, bool congested, TimePoint now) noexcept;
  [[nodiscard]] bool expects(Opcode opcode) const noexcept;

  const MemoryTable& memory_;
  CompletionRing& completions_;
  SendQueue sends_;
  std::optional<ReceiveQueue> own_receives_;
  Requester requester_;
  Responder responder_;
  Path path_;
  Inbound inbound_;
  ibv_wc_status cause_ = IBV_WC_SUCCESS;
};

}  // namespace ipoverbs::verbs::soft
