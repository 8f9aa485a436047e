// A network of two software devices on a virtual clock, driven through the inline verbs.
//
// Each end has a worker (completion queue) on a wire of its own; what one sends reaches the other
// after a fixed latency and the time that its bytes take at a fixed rate, in order. A line may mark
// what it has to queue (ECN), as a router would. A fault plan may stand before either wire. Nothing
// happens by itself: run() moves the clock from event to event, polls whoever has something to do
// and hands completions out.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "verbs/soft/fault_plan.h"
#include "verbs/soft/worker.h"

namespace ipoverbs::verbs::soft::sim {

class Clock : public TimeSource {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  void advance_to(TimePoint when) {
    if (when > now_) now_ = when;
  }

 private:
  TimePoint now_{};
};

// One end's connector. What is sent is kept by the peer until it has arrived.
class SimWire : public Wire {
 public:
  static constexpr std::int64_t kBitsPerNanosecond = 10;

  void connect(SimWire& peer, const Endpoint& local) {
    peer_ = &peer;
    local_ = local;
  }
  // One way.
  void set_latency(Duration latency) { latency_ = latency; }
  // Bytes that may wait to be received; what comes beyond is lost.
  void limit_buffer(std::size_t bytes) { buffer_limit_ = bytes; }
  // What waits for the line for longer than `queued` is marked, if it is capable of that.
  void mark_beyond(Duration queued) { mark_beyond_ = queued; }

  void send(const Burst& burst, TimePoint now) noexcept override;
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint now) noexcept override;
  [[nodiscard]] std::span<const Received> receive(TimePoint now) noexcept override;
  // When the next datagram arrives.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept override;

  [[nodiscard]] std::uint64_t overflows() const { return overflows_; }
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }
  [[nodiscard]] std::size_t largest_backlog() const { return largest_backlog_; }
  // How long at most anything has waited for the line since the last call.
  [[nodiscard]] Duration take_longest_queue() { return std::exchange(longest_queue_, {}); }
  // Called with each datagram that is sent, faults done.
  std::function<void(std::span<const std::byte>)> tap;

 private:
  struct Arrival {
    TimePoint at;
    std::vector<std::byte> bytes;
    std::size_t segment = 0;
    std::uint8_t traffic_class = 0;
  };
  void carry(std::vector<std::byte> bytes, std::size_t segment, std::uint8_t traffic_class,
             TimePoint now);

  SimWire* peer_ = nullptr;
  Duration latency_ = std::chrono::microseconds(20);
  Endpoint local_;
  TimePoint free_at_{};  // when the line has sent all so far
  std::deque<Arrival> arriving_;
  std::vector<Arrival> arrived_;
  std::vector<Received> received_;
  std::size_t backlog_ = 0;
  std::size_t largest_backlog_ = 0;
  Duration mark_beyond_ = Duration::max();
  Duration longest_queue_{};
  std::size_t buffer_limit_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t overflows_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

// One device of the two.
class End : public EngineObserver, public Bell {
 public:
  End(Clock& clock, const Endpoint& local, const std::optional<FaultPlan>& faults,
      std::uint64_t salt, std::uint32_t depth);

  // EngineObserver, Bell: what happened is kept.
  void on_communication(QpNumber qp) noexcept override { communications.push_back(qp); }
  void on_failure(QpNumber qp, ibv_wc_status status) noexcept override {
    failures.emplace_back(qp, status);
  }
  [[nodiscard]] bool on_stray(const Received& /*datagram*/, QpNumber /*qp*/) noexcept override {
    return false;
  }
  void ring() noexcept override { ++rings; }
  void set_alarm(TimePoint when) noexcept override { alarm = when; }

  // Registers `size` bytes that live as long as the device.
  [[nodiscard]] std::pair<std::span<std::byte>, LocalKey> memory(std::size_t size);
  [[nodiscard]] QueuePair& add_queue_pair(const QueuePairSetup& setup);

  Endpoint local;
  SimWire wire;
  std::optional<FaultyWire> faulty;
  MemoryTable table;
  ibv_context context = make_context();
  Worker worker;

  std::vector<QpNumber> communications;
  std::vector<std::pair<QpNumber, ibv_wc_status>> failures;
  int rings = 0;
  std::optional<TimePoint> alarm;

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> memories_;
};

struct NetworkConfig {
  std::optional<FaultPlan> faults_a = {};
  std::optional<FaultPlan> faults_b = {};
  bool v6 = false;
  std::uint32_t depth = 4096;  // of the completion queues
};

class Network {
 public:
  explicit Network(const NetworkConfig& config = {});

  // Puts the two queue pairs into RTS, each connected to the other.
  struct Connect {
    std::uint32_t mtu = 1024;
    std::uint8_t retry_count = 6;
    std::uint8_t rnr_retry = 6;
    std::uint8_t ack_timeout = 14;
    std::uint8_t min_rnr_timer = 1;
    std::uint64_t window_limit = std::uint64_t{1} << 20;
    RcTuning tuning;
    Psn first_a{0xfffff0};
    Psn first_b{0x000100};
  };
  void connect(QueuePair& a, QueuePair& b, const Connect& how);

  using Completions = std::function<void(End&, std::span<const ibv_wc>)>;
  // Until nothing is left to do, `until` is passed or `done` says so. `on_completions` may post.
  void run(const Completions& on_completions, TimePoint until,
           const std::function<bool()>& done = {});

  Clock clock;
  End a;
  End b;

 private:
  bool poll(End& end, const Completions& on_completions);
};

}  // namespace ipoverbs::verbs::soft::sim
