// Engine: one completion queue, its queue pairs and the wire that they share.
//
// Theory of operation. Nothing runs by itself: posting a send transmits at once what the window
// allows, and polling an empty completion queue makes progress: it takes one batch from the wire,
// hands each datagram to its queue pair, runs timers that are due, and sends what follows from all
// that, one answer a queue pair. The order of work is the order of the list of queue pairs that
// something happened to; a long one gives way after each burst.
//
// Threads: all of it belongs to one worker at a time. verbs/soft/worker.h hands over what the
// control thread wants done.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/gauge.h"
#include "verbs/soft/burst.h"
#include "verbs/soft/completion_ring.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/wire.h"

namespace ipoverbs::verbs::soft {

// Written by the worker, read by any thread.
struct EngineCounters {
  Gauge datagrams;  // received
  Gauge marked;     // of them: by a congested queue (ECN)
  // Sums over the queue pairs, those that are gone included.
  Gauge resent;
  Gauge probes;
  Gauge timeouts;
  Gauge sequence_naks;  // heard
  Gauge rnr_naks;       // heard
  Gauge notifications_heard;
  Gauge notifications_sent;
  Gauge duplicates;
  Gauge out_of_sequence;
  std::array<Gauge, static_cast<std::size_t>(Reject::kCount)> rejects;

  [[nodiscard]] std::uint64_t rejected(Reject reject) const {
    return rejects.at(static_cast<std::size_t>(reject)).value();
  }
};

// What a queue pair did that somebody else has to know. Called by the worker within a poll or post.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // The first request of the other side was executed: the connection is established.
  virtual void on_communication(QpNumber qp) noexcept = 0;
  // It has failed by itself, which status says.
  virtual void on_failure(QpNumber qp, ibv_wc_status status) noexcept = 0;
  // One datagram for a queue pair that is not here. Whether it is taken care of; otherwise it is
  // dropped and counted.
  [[nodiscard]] virtual bool on_stray(const Received& datagram, QpNumber qp) noexcept = 0;
};

class Engine {
 public:
  // `depth` in completions. The wire and the observer outlive the engine.
  Engine(Wire& wire, EngineObserver& observer, std::uint32_t depth);

  // The queue pair reports to completions() and is heard from now on.
  void add(std::shared_ptr<QueuePair> qp);
  // Harmless for a queue pair that is not here.
  void remove(QpNumber number);
  // nullptr if there is none.
  [[nodiscard]] QueuePair* find(QpNumber number) const;
  // Something was done to the queue pair: what follows is sent by the next transmit().
  void touch(QueuePair& qp) noexcept;

  // As ibv_poll_cq(3): how many completions were written to `out`.
  [[nodiscard]] std::uint32_t poll(std::span<ibv_wc> out, TimePoint now) noexcept;
  // As ibv_post_send(3).
  int post_send(QueuePair& qp, ibv_send_wr* list, ibv_send_wr** bad, TimePoint now) noexcept;
  void progress(TimePoint now) noexcept;
  void transmit(TimePoint now) noexcept;
  // A datagram, or several, that came another way.
  void receive(const Received& received, TimePoint now) noexcept;
  // When progress() wants to be called though nothing comes in; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept;

  [[nodiscard]] CompletionRing& completions() noexcept { return completions_; }
  // Any thread.
  [[nodiscard]] const EngineCounters& counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] std::optional<Reject> dispatch(const Received& received, std::size_t i,
                                               TimePoint now) noexcept;
  void run_timers(TimePoint now) noexcept;
  void flush_burst(TimePoint now) noexcept;
  void report_failure(const QueuePair& qp, ibv_qp_state was) noexcept;
  void note_deadline(const QueuePair& qp) noexcept;
  void count(QueuePair& qp) noexcept;

  Wire& wire_;
  EngineObserver& observer_;
  CompletionRing completions_;
  std::unordered_map<std::uint32_t, std::shared_ptr<QueuePair>> queue_pairs_;
  std::vector<QueuePair*> touched_;    // in the order of work
  std::optional<TimePoint> earliest_;  // no queue pair has a timer before it
  Burst burst_;
  EngineCounters counters_;
};

}  // namespace ipoverbs::verbs::soft
