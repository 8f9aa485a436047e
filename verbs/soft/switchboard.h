// Switchboard: what the workers of one device tell its control thread, and each other.
//
// Any worker calls notify() and forward() at any time. Both are rare (a connection's first packet,
// its failure; a datagram that the far end's or our kernel merged into another worker's), so a
// mutex serves. The control thread attaches and detaches workers and takes the notices.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/fd.h"
#include "verbs/soft/engine.h"
#include "verbs/soft/qp_numbers.h"
#include "verbs/soft/worker.h"

namespace ipoverbs::verbs::soft {

// What happened to a queue pair.
struct Notice {
  QpNumber qp;
  ibv_wc_status status = IBV_WC_SUCCESS;  // success: its first packet came; else it has failed
};

class Switchboard {
 public:
  // `time` outlives the switchboard.
  explicit Switchboard(const TimeSource& time) : time_(time) {}

  // Control thread. A worker is detached before it is destroyed.
  void attach(unsigned slot, Worker& worker);
  void detach(unsigned slot);
  [[nodiscard]] std::vector<Notice> take();
  // Readable when there are notices.
  [[nodiscard]] int fd() const noexcept { return bell_.fd(); }

  // Any thread: hands a copy of one datagram to the worker whose slot `qp` names, which is not the
  // caller's own. False: there is none.
  [[nodiscard]] bool forward(const Received& datagram, QpNumber qp) noexcept;

  void notify(const Notice& notice) noexcept;

 private:
  const TimeSource& time_;
  EventFd bell_;
  std::mutex mutex_;
  std::array<Worker*, kSlots> workers_{};  // guarded by mutex_
  std::vector<Notice> notices_;            // guarded by mutex_
};

}  // namespace ipoverbs::verbs::soft
