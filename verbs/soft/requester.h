// The sending half of a reliable connection (InfiniBand Architecture vol. 1, 9.7.2 to 9.7.7).
//
// Theory of operation. Requests are taken from the send queue in order and cut into packets of the
// path MTU, each with the next PSN. Three places in that sequence matter:
//
//   acknowledged | under way       | to be sent again | never sent
//                ^ unacked_        ^ next_psn_        ^ sent_end_
//
// transmit() sends from next_psn_ on while the window has room. An answer moves unacked_ on, which
// completes the requests behind it; a loss moves next_psn_ back to unacked_ (go-back-N), and so
// does RNR, after the time that the receiver asked for.
//
// What tells of a loss: a NAK, whose PSN also acknowledges all before it; or silence. Silence is
// timed from measured round trips (RcTuning), far below the connection's ACK timeout, which bounds
// it: first one packet is sent again to ask, then everything. Before a round trip was measured
// there is no asking, which would spoil the measurement; what nobody asked about is always asked
// for first.
//
// Congestion: a loss and a notification (CNP) both shrink the window (SendWindow), once for all
// that was then under way.
//
// Giving up follows the connection's attributes. RETRY_EXC_ERR: no sign of life came for
// retry_count + 1 ACK timeouts, nor an answer to as many resends. What the other side sends on its
// own account is a sign of life as well, but an answer has to come within kUnanswered times that: a
// path may carry its packets and not ours (an MTU that shrank). ACK timeout code 0 never gives up.
// A retry_count of 7 is seven, as the specification has it, not endless as rdma_rxe has it.
// RNR_RETRY_EXC_ERR: more than rnr_retry RNR NAKs about one packet; there 7 is endless.
//
// Completions: signalled requests in order; a failure completes its own request with a status and
// all later ones as flushed, signalled or not. One thread; nothing allocates.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "verbs/soft/burst.h"
#include "verbs/soft/completion_ring.h"
#include "verbs/soft/rc_tuning.h"
#include "verbs/soft/roce.h"
#include "verbs/soft/rtt.h"
#include "verbs/soft/send_window.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

struct RequesterConfig {
  QpNumber destination;
  Psn first;
  std::uint32_t mtu = 1024;  // path MTU in bytes
  std::uint8_t retry_count = 6;
  std::uint8_t rnr_retry = 6;
  std::uint8_t ack_timeout = 14;   // code
  std::uint64_t window_limit = 0;  // bytes, as SendWindow counts them
  RcTuning tuning;
};

class Requester {
 public:
  static constexpr int kUnanswered = 4;
  // Set: the connection has failed, with this status for the oldest request.
  using Failure = std::optional<ibv_wc_status>;

  // `self` is the number of the queue pair, for completions.
  Requester(SendQueue& queue, CompletionRing& completions, QpNumber self);
  void connect(const RequesterConfig& config);

  // Adds to `burst` what may be sent now.
  [[nodiscard]] Failure transmit(TimePoint now, const Path& path, Burst& burst) noexcept;
  // An Acknowledge packet.
  [[nodiscard]] Failure on_answer(const Packet& packet, TimePoint now) noexcept;
  // A CNP packet.
  void on_congestion() noexcept;
  // A packet that is no answer.
  void on_sign_of_life(TimePoint now) noexcept { heard_ = now; }
  // When deadline() has passed.
  [[nodiscard]] Failure on_timer(TimePoint now) noexcept;
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept;

  // Completes the oldest request with `first` and all others as flushed.
  void flush(ibv_wc_status first) noexcept;
  // Nothing posted that is not acknowledged.
  [[nodiscard]] bool idle() const noexcept { return queue_.empty(); }
  [[nodiscard]] const RequesterCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const SendWindow& window() const noexcept { return window_; }
  [[nodiscard]] const RttEstimator& rtt() const noexcept { return rtt_; }

 private:
  struct Cursor {
    RequestIndex request = 0;
    std::uint32_t packet = 0;  // within it
  };

  [[nodiscard]] bool outstanding() const noexcept { return unacked_ != next_psn_; }
  [[nodiscard]] std::uint64_t cost(const SendRequest& request, std::uint32_t from,
                                   std::uint32_t to) const noexcept;
  void begin(SendRequest& request) noexcept;
  // Whether next_ may be sent: there is such a packet, and the window has room for it.
  [[nodiscard]] bool may_send() noexcept;
  [[nodiscard]] bool wants_answer(const SendRequest& sent, TimePoint now) noexcept;
  void send_next(TimePoint now, const Path& path, Burst& burst) noexcept;
  void send_probe(TimePoint now, const Path& path, Burst& burst) noexcept;
  void note_asked(TimePoint now, Psn psn) noexcept;
  void add(const Path& path, Burst& burst, Cursor at, bool ask) noexcept;

  void acknowledge(Psn up_to, TimePoint now) noexcept;
  [[nodiscard]] Failure on_nak(const Packet& packet, TimePoint now) noexcept;
  [[nodiscard]] Failure on_rnr(const Packet& packet, TimePoint now) noexcept;
  void go_back() noexcept;
  void on_loss() noexcept;
  void complete(const SendRequest& request, ibv_wc_status status) noexcept;

  [[nodiscard]] Duration answer_timeout() const noexcept;
  [[nodiscard]] Duration probe_after() const noexcept;
  // What timers are multiplied by.
  [[nodiscard]] std::int64_t backed_off() const noexcept {
    return std::int64_t{1} << std::min(backoff_, 10U);
  }
  [[nodiscard]] bool exhausted(TimePoint now) const noexcept;

  SendQueue& queue_;
  CompletionRing& completions_;
  QpNumber self_;
  RequesterConfig config_;
  std::optional<Duration> ack_timeout_;  // nullopt: endless

  Cursor next_;
  RequestIndex begun_ = 0;  // first request that has no PSNs yet
  Psn unacked_;
  Psn next_psn_;
  Psn sent_end_;
  SendWindow window_;
  std::uint64_t under_way_ = 0;  // bytes from unacked_ to next_psn_, as the window counts them

  std::uint32_t messages_unasked_ = 0;  // sent since AckReq was last set
  std::uint64_t bytes_unasked_ = 0;
  bool asked_under_way_ = false;  // the last packet with AckReq, asked_psn_, isn't acknowledged
  Psn asked_psn_;
  std::optional<TimePoint> asked_;  // when AckReq was last set
  TimePoint last_sent_;             // when a packet was last sent
  bool probe_now_ = false;
  bool probed_ = false;  // since last_sent_

  RttEstimator rtt_;
  bool timing_ = false;
  Psn timed_;
  TimePoint timed_at_;

  TimePoint heard_;             // when the other side last gave a sign of life
  TimePoint answered_;          // when it last answered, or had nothing to answer
  TimePoint answer_due_;        // meaningful while outstanding()
  std::uint32_t silences_ = 0;  // timeouts since answered_
  std::uint32_t backoff_ = 0;   // timeouts since a round trip was measured
  std::optional<TimePoint> rnr_until_;
  std::uint32_t rnr_count_ = 0;  // about unacked_
  bool recovering_ = false;      // from a loss, until recovered_ is acknowledged
  Psn recovered_;
  std::optional<Psn> went_back_to_;
  TimePoint went_back_at_;

  RequesterCounters counters_;
};

}  // namespace ipoverbs::verbs::soft
