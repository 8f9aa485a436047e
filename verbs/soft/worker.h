// Worker: an Engine as the verbs see it, and how two threads share it.
//
// The worker is the ibv_cq that a caller polls; its thread is whichever calls ibv_poll_cq,
// ibv_req_notify_cq and ibv_post_send, one at a time. What the control thread wants done to a
// queue pair it hands over with hand_over(): the worker runs it the next time that it enters one of
// those calls, before anything else. So what was handed over before a caller learned that it may
// post is done before it posts.
//
// Between arm() and disarm() the caller may go to sleep whenever a poll came back empty, so the
// bell's alarm is kept at the engine's next deadline, or somewhat before: one that is still to come
// is not put off.
//
// The verbs want one more poll between arming and sleeping, for completions that were made before
// the arming. Here polling makes them, and what has come in and was not polled keeps the caller
// awake; so a poll just after arm() leaves the wire alone, which spares a system call, if another
// has looked there since disarm().
//
// settle() waits until the worker is outside: then it neither reads nor writes memory that was
// posted to a queue pair whose removal was handed over before. No lock is taken by the worker
// unless something was handed over; both sides look at the other's flag after raising their own.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "verbs/soft/engine.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

// What wakes a sleeping worker.
class Bell {
 public:
  virtual ~Bell() = default;
  // There is something to do. Any thread.
  virtual void ring() noexcept = 0;
  // The worker may sleep, and wants to be woken at `when`, which replaces what was set before.
  virtual void set_alarm(TimePoint when) noexcept = 0;
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
};

class Worker : public ibv_cq {
 public:
  using Command = std::function<void(Engine&)>;

  // `depth` in completions. All references outlive the worker. `context` is that of make_context().
  Worker(ibv_context& context, Wire& wire, EngineObserver& observer, Bell& bell,
         const TimeSource& time, std::uint32_t depth);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() = default;

  // Control thread.
  void hand_over(Command command);
  void settle() const noexcept;

  // Worker's thread: the verbs.
  [[nodiscard]] int poll(int entries, ibv_wc* completions) noexcept;
  int arm(bool solicited_only) noexcept;
  int post_send(QueuePair& qp, ibv_send_wr* list, ibv_send_wr** bad) noexcept;

  // What the bell rang for is being looked at; alarms are set again by the next arm().
  void disarm() noexcept { armed_ = looked_ = false; }

  // Any thread.
  [[nodiscard]] const EngineCounters& counters() const noexcept { return engine_.counters(); }
  // Worker's thread, or any while there is none.
  [[nodiscard]] Engine& engine() noexcept { return engine_; }

 private:
  class Inside;
  void run_commands() noexcept;
  void keep_alarm(TimePoint now) noexcept;

  Engine engine_;
  Bell& bell_;
  const TimeSource& time_;
  bool armed_ = false;              // the caller may sleep: alarms count
  bool just_armed_ = false;         // and has not polled since
  bool looked_ = false;             // a poll has looked at the wire since disarm()
  std::optional<TimePoint> alarm_;  // the last one set

  std::atomic<std::uint64_t> entered_{0};  // odd while the worker is inside
  std::atomic<bool> waiting_{false};       // commands_ is not empty
  std::mutex mutex_;
  std::vector<Command> commands_;  // guarded by mutex_
};

// The object behind an ibv_srq. One thread: that of the worker whose queue pairs use it.
class SharedReceives : public ibv_srq {
 public:
  SharedReceives(ibv_context& owner, const MemoryTable& memory, std::uint32_t depth);
  [[nodiscard]] ReceiveQueue& queue() noexcept { return queue_; }
  int post(ibv_recv_wr* list, ibv_recv_wr** bad) noexcept;

 private:
  const MemoryTable& memory_;
  ReceiveQueue queue_;
};

// A context whose operations are those of this device; queues that carry it may be handed to
// ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq and ibv_req_notify_cq, and to no
// other function of libibverbs.
[[nodiscard]] ibv_context make_context();

}  // namespace ipoverbs::verbs::soft
