// The software device's completion queues, shared receive queues and memory regions: what
// verbs/device.h asks for, around a Worker.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "core/clock.h"
#include "core/epoll.h"
#include "core/fd.h"
#include "core/timer.h"
#include "verbs/device.h"
#include "verbs/soft/fault_plan.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/open.h"
#include "verbs/soft/port_group.h"
#include "verbs/soft/switchboard.h"
#include "verbs/soft/udp_wire.h"
#include "verbs/soft/worker.h"

namespace ipoverbs::verbs::soft {

class MonotonicTime : public TimeSource {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return monotonic_now(); }
};

class SoftCompletionQueue;

// What all objects of one device share; it outlives them.
struct DeviceParts {
  DeviceParts(const Endpoint& underlay, const SoftOptions& options)
      : local(underlay),
        faults(options.faults.value_or(FaultPlan{})),
        random(options.seed),
        ports(underlay, faults.coalescing),
        switchboard(time) {}

  Endpoint local;
  FaultPlan faults;
  std::mt19937_64 random;
  PortGroup ports;
  MonotonicTime time;
  MemoryTable memory;
  ibv_context context = make_context();
  Switchboard switchboard;
  std::vector<const SoftCompletionQueue*> queues;  // those there are; control thread
};

class SoftMemoryRegion final : public MemoryRegion {
 public:
  // Throws SystemError when there are too many regions.
  SoftMemoryRegion(MemoryTable& table, std::span<std::byte> memory);
  SoftMemoryRegion(const SoftMemoryRegion&) = delete;
  SoftMemoryRegion& operator=(const SoftMemoryRegion&) = delete;
  ~SoftMemoryRegion() override { table_.remove(key_); }
  [[nodiscard]] LocalKey local_key() const override { return key_; }

 private:
  MemoryTable& table_;
  LocalKey key_;
};

// fd() is an epoll descriptor over the receiving socket (something came in), a timer (a deadline is
// due) and an eventfd (a completion was made, or the control thread wants something done).
class SoftCompletionQueue final : public CompletionQueue, private EngineObserver, private Bell {
 public:
  // Throws SystemError.
  SoftCompletionQueue(DeviceParts& device, std::uint32_t depth);
  SoftCompletionQueue(const SoftCompletionQueue&) = delete;
  SoftCompletionQueue& operator=(const SoftCompletionQueue&) = delete;
  ~SoftCompletionQueue() override;

  [[nodiscard]] ibv_cq* raw() const override { return worker_.get(); }
  [[nodiscard]] int fd() const override { return epoll_.fd(); }
  void watch(Epoll& epoll, std::uint32_t tag) const override;
  void consume_events() noexcept override;

  [[nodiscard]] unsigned slot() const { return slot_; }
  [[nodiscard]] Worker& worker() { return *worker_; }
  // Any thread.
  [[nodiscard]] const EngineCounters& counters() const { return worker_->counters(); }
  [[nodiscard]] const UdpCounters& wire_counters() const { return wire_->counters(); }
  // nullptr: no faults are planned.
  [[nodiscard]] const FaultyWire* faulty_wire() const { return faulty_ ? &*faulty_ : nullptr; }
  // Where its queue pairs send from.
  [[nodiscard]] const Endpoint& local() const { return wire_->local(); }
  // What its queue pairs may have under way, in bytes.
  [[nodiscard]] std::uint64_t window_limit() const;

 private:
  void on_communication(QpNumber qp) noexcept override;
  void on_failure(QpNumber qp, ibv_wc_status status) noexcept override;
  [[nodiscard]] bool on_stray(const Received& datagram, QpNumber qp) noexcept override;
  void ring() noexcept override;
  void set_alarm(TimePoint when) noexcept override;

  DeviceParts& device_;
  unsigned slot_;
  EventFd bell_;
  std::atomic<bool> rung_{false};  // bell_ is readable
  Timer timer_;
  std::optional<TimePoint> alarm_;  // timer_ is set to
  Epoll epoll_;
  std::optional<UdpWire> wire_;
  std::optional<FaultyWire> faulty_;
  std::unique_ptr<Worker> worker_;
};

class SoftSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  SoftSharedReceiveQueue(DeviceParts& device, std::uint32_t depth)
      : receives_(std::make_unique<SharedReceives>(device.context, device.memory, depth)) {}
  [[nodiscard]] ibv_srq* raw() const override { return receives_.get(); }
  [[nodiscard]] SharedReceives& receives() { return *receives_; }

 private:
  std::unique_ptr<SharedReceives> receives_;
};

}  // namespace ipoverbs::verbs::soft
