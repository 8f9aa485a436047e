// The receiving half of a reliable connection (InfiniBand Architecture vol. 1, 9.7.3 to 9.7.8).
//
// Theory of operation. One PSN is expected. The packet that has it is executed: a SEND's payload
// goes to the oldest receive request, which its FIRST or ONLY packet takes and its LAST or ONLY
// packet completes; the queue may be shared, the request taken is this connection's. A later packet
// is dropped and a NAK sent; an earlier one is dropped and acknowledged again. A message without a
// receive request draws an RNR NAK and changes nothing.
//
// What is to be answered is kept as state and sent by transmit(), one packet for all that was
// received since: a NAK tells all that an ACK would have told. After a NAK there is silence until
// the expected packet comes, or until PSNs fall back, which says that the sender has started anew
// and the expected packet was lost again. When it has come, an ACK says so at once, before another
// NAK: rdma_rxe heeds no further NAK until an ACK has told it that its retry was a success
// (drivers/infiniband/sw/rxe/rxe_comp.c, comp.started_retry), and would wait for its timer.
//
// A lone ACK waits for company, ack_delay at most: the answer of an application often follows on
// the heels of a message, and a datagram of its own would cost both hosts as much as that answer.
// What doesn't wait: an ACK when a second one is asked for, or when more than a packet's worth of
// bytes came since the last (the sender's window may have closed over them), one for a packet that
// came twice or after a NAK, NAKs.
//
// Congestion: a packet that arrived marked (ECN, RFC 3168) is answered by a notification (CNP,
// annex A17.9), at most one each RcTuning::notify, which goes before the answer.
//
// Errors (on_request() returns a failure) send their NAK and end the connection:
//
//   invalid request     RDMA WRITE, READ, atomics and SEND with invalidate, which are not granted;
//                       a first packet within a message, another outside; a size that the path
//                       MTU and the opcode don't allow
//   invalid request     a message longer than its receive request; completes with LOC_LEN_ERR here
//   remote operational  memory that is not registered; completes with LOC_PROT_ERR here
//
// One thread; nothing allocates. Each payload is copied once, here.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "verbs/soft/burst.h"
#include "verbs/soft/completion_ring.h"
#include "verbs/soft/rc_tuning.h"
#include "verbs/soft/roce.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

struct ResponderConfig {
  QpNumber source;  // the other side's queue pair: where answers go
  Psn expected;
  std::uint32_t mtu = 1024;        // path MTU in bytes
  std::uint8_t min_rnr_timer = 1;  // code
  Duration ack_delay{0};           // how long a lone ACK may wait
  Duration notify = RcTuning{}.notify;
};

class Responder {
 public:
  // The status for a receive request that was taken; IBV_WC_WR_FLUSH_ERR if it isn't at fault.
  using Failure = std::optional<ibv_wc_status>;

  Responder(ReceiveQueue& queue, CompletionRing& completions, QpNumber self);
  void connect(const ResponderConfig& config);
  void set_min_rnr_timer(std::uint8_t code) { config_.min_rnr_timer = code; }

  // A request packet: anything but an answer.
  [[nodiscard]] Failure on_request(const Packet& packet) noexcept;
  // Such a packet met congestion on its way.
  void on_congestion(TimePoint now) noexcept;
  // Adds what is to be told, if anything, and does not wait any more; `company`: packets of this
  // connection leave with it. May be called once more after a failure, for its NAK.
  void transmit(TimePoint now, const Path& path, Burst& burst, bool company) noexcept;
  // When a waiting ACK will wait no more.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept { return ack_at_; }

  // Completes a request that was taken and not completed, with `status`.
  void flush(ibv_wc_status status) noexcept;
  [[nodiscard]] Psn expected() const noexcept { return expected_; }
  [[nodiscard]] const ResponderCounters& counters() const noexcept { return counters_; }

 private:
  enum class Due : std::uint8_t { Nothing, Ack, SequenceNak, RnrNak, FatalNak };
  enum class Silence : std::uint8_t { None, SequenceNak, RnrNak };

  [[nodiscard]] bool waits(TimePoint now) noexcept;
  void out_of_sequence(Psn psn) noexcept;
  [[nodiscard]] bool well_formed(const Packet& packet) const noexcept;
  [[nodiscard]] Failure refuse(NakCode code, ibv_wc_status status) noexcept;
  [[nodiscard]] bool take_request() noexcept;
  [[nodiscard]] Failure place(std::span<const std::byte> payload) noexcept;
  void advance() noexcept;
  void complete(const Packet& packet) noexcept;
  void add_answer(Due due, const Path& path, Burst& burst) noexcept;
  void add_notification(const Path& path, Burst& burst) noexcept;

  ReceiveQueue& queue_;
  CompletionRing& completions_;
  QpNumber self_;
  ResponderConfig config_;

  Psn expected_;
  std::uint32_t msn_ = 0;  // messages completed, mod 2^24
  bool in_message_ = false;
  ReceiveRequest taken_;        // meaningful while in_message_
  std::uint64_t received_ = 0;  // bytes of the message
  std::uint32_t sge_ = 0;       // where the next byte goes
  std::uint32_t sge_offset_ = 0;

  Due due_ = Due::Nothing;
  NakCode fatal_ = NakCode::InvalidRequest;
  std::uint32_t asks_ = 0;           // packets that asked since the last answer
  std::uint64_t unanswered_ = 0;     // bytes since the last answer
  std::optional<TimePoint> ack_at_;  // an ACK waits until then
  Silence silence_ = Silence::None;  // what was said, and is not to be repeated
  bool dropped_ = false;             // a packet beyond expected_, since the last one in order
  Psn beyond_;                       // the furthest of those
  bool recovered_ = false;           // what a NAK asked for has come, and no ACK has said so
  bool notification_due_ = false;
  std::optional<TimePoint> notified_;  // when it last became due
  ResponderCounters counters_;
};

}  // namespace ipoverbs::verbs::soft
