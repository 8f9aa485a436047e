// Worker: one thread that moves packets between one TUN queue and the sessions that are its own.
//
// Theory of operation. A worker shares nothing with another: it has its TUN queue, its completion
// queue, its shared receive queue, its memory and its queue pairs. A turn of its loop is, in this
// order and each part bounded:
//
//   - commands from the control thread (a flag says whether there are any)
//   - up to kPollBatch completions: messages to the TUN, slabs given back, receives posted again in
//     bulk
//   - up to kTunBatch packets from the TUN, gathered into messages, one chain a session
//   - grants that are due, and everything that waits is posted
//   - a tick, five times a second or as often as the options' times need: keepalives, dead peers,
//     gauges
//
// To find the TUN empty costs a system call. So where packets come alone, one is read and sent
// without asking for a second, but for each eighth turn; where that finds one, turns read all that
// there is until one finds a packet alone again.
//
// When a turn left nothing to be done (fewer completions than were asked for, the TUN read until it
// was empty) and no work was seen for options.spin, the worker arms the completion queue, polls it
// once more (what arrived before the arming made no event) and sleeps until a completion, a packet,
// a command or the next tick; the turn after that looks only where something is. It arms for
// solicited completions, which messages cause and its own sends do not; but if its own sends are
// what it waits for, for all.
//
// The TUN is left unread while no session could take a packet: the interface's own queue is the
// place where packets wait. A session beside others that has no credit, or pins its share of the
// slabs (send_queue.h), queues a little (FrameQueue) instead, so that no peer stalls another.
//
// Threads. The control thread constructs, starts, submits commands, takes reports, stops and
// destroys; everything else is the worker's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/bounded.h"
#include "core/clock.h"
#include "core/epoll.h"
#include "core/fd.h"
#include "core/log.h"
#include "core/timer.h"
#include "transport/buffers.h"
#include "transport/counters.h"
#include "transport/link.h"
#include "transport/options.h"
#include "transport/refusals.h"
#include "transport/route_table.h"
#include "transport/too_big.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

// From the control thread to a worker; see Link for their order.
struct AttachLink {
  LinkConfig config;
};
struct ActivateLink {
  LinkId id;
  Hello hello;
  bool dialled = false;  // by us
};
struct DetachLink {
  LinkId id;
};
struct ForgetLink {
  LinkId id;
};
// The kernel is not to be asked for this any more (Refusals); every peer is told.
struct Withdraw {
  std::uint32_t capabilities = 0;
};
using Command = std::variant<AttachLink, ActivateLink, DetachLink, ForgetLink, Withdraw>;

// From a worker to the control thread.
struct Report {
  enum class Kind : std::uint8_t {
    Attached,      // answer to AttachLink: its receives are posted, the far end may send
    Failed,        // the session is of no more use; why says why. Once a link.
    Detached,      // answer to DetachLink
    Withdrawn,     // the kernel here refuses what it took at the start: capabilities, all so far
    PeerWithdrew,  // the far end says that of its own: capabilities that are left
  };
  Kind kind{};
  LinkId link;
  std::string why = {};
  std::uint32_t capabilities = 0;
};

class Worker {
 public:
  static constexpr int kPollBatch = 32;           // completions a turn
  static constexpr std::uint32_t kTunBatch = 64;  // packets a turn

  // Creates queues and registers memory: throws SystemError. Does not run yet. What is passed by
  // reference outlives the worker.
  Worker(verbs::Device& device, int tun_queue, unsigned index, const Options& options,
         const RouteTable& routes, EventFd& report_bell, Logger& logger);
  // Stops. Queue pairs of its links are destroyed before, or never post again.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  // Joins the thread; harmless if it does not run.
  void stop();
  void submit(Command command);
  [[nodiscard]] std::vector<Report> take_reports();

  // How queue pairs of this worker are to be made.
  [[nodiscard]] verbs::QueuePairConfig queue_pair_config() const;
  [[nodiscard]] SendQueue::Limits send_limits() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const DoorbellSizes& doorbells() const { return doorbells_; }
  [[nodiscard]] const PeerGauges& peer_gauges(PeerIndex peer) const { return peer_gauges_[peer]; }

  // For tests, which drive a worker by hand instead of start(): one turn, and how much it did.
  int turn(TimePoint now) noexcept;

 private:
  // worker.cc: the loop and what it waits for
  void run() noexcept;
  void wait(TimePoint now) noexcept;
  void sleep() noexcept;
  void watch_tun(bool watch) noexcept;
  void tick(TimePoint now) noexcept;
  // worker_links.cc: commands
  void run_commands() noexcept;
  void execute(AttachLink& command);
  void execute(ActivateLink& command);
  void execute(DetachLink& command);
  void execute(ForgetLink& command);
  void execute(Withdraw& command);
  void tell_capabilities(Link& link) noexcept;
  void add_receives(Link& link);
  void add_buffers(std::uint32_t count);
  [[nodiscard]] Link* find(LinkId id) noexcept;
  void deactivate(Link& link) noexcept;
  [[gnu::cold]] void fail(Link& link, std::string why) noexcept;
  void report(Report report) noexcept;
  // worker_rx_datapath.cc
  int receive(TimePoint now) noexcept;
  void on_completion(const ibv_wc& completion, TimePoint now) noexcept;
  void on_message(Link& link, std::span<std::byte> message, TimePoint now) noexcept;
  [[gnu::cold]] void on_capabilities(Link& link, const Frame& frame) noexcept;
  void deliver(Link& link, const Frame& frame) noexcept;
  [[nodiscard]] bool accept_checksum(std::span<std::byte> packet,
                                     tun::VirtioNetHeader& header) noexcept;
  void post_receives() noexcept;
  [[gnu::cold]] void on_error(const ibv_wc& completion) noexcept;
  // worker_tun_datapath.cc: results are errno values, 0 for success
  void write_tun(std::span<std::byte> tun_bytes, Link& link) noexcept;
  [[nodiscard]] int write_record(std::span<const std::byte> tun_bytes) noexcept;
  [[gnu::cold]] void on_refused(Capability work, Link& link) noexcept;
  [[gnu::cold]] void answer_too_big(const Link& link, std::span<const std::byte> packet,
                                    std::size_t largest) noexcept;
  [[nodiscard]] int write_in_software(std::span<std::byte> tun_bytes,
                                      const tun::VirtioNetHeader& header) noexcept;
  [[nodiscard]] int write_segments(std::span<const std::byte> packet,
                                   const tun::VirtioNetHeader& header) noexcept;
  // worker_tx_datapath.cc
  int transmit(TimePoint now, bool from_tun) noexcept;
  int read_tun() noexcept;
  [[nodiscard]] bool may_read() const noexcept;
  void drain_waiting(Link& link) noexcept;
  void route(std::span<std::byte> frame, std::size_t packet_length) noexcept;
  void send_to_all(std::span<std::byte> frame,
                   const std::optional<csum::ChecksumPlace>& checksum) noexcept;
  // A packet that is larger than the link's MTU and may be fragmented. What is read into is written
  // over.
  [[gnu::cold]] void send_fragments(Link& link, std::span<std::byte> frame,
                                    const std::optional<csum::ChecksumPlace>& checksum) noexcept;
  // `checksum`: what is still to be completed, of a frame whose flags say that it is complete.
  void send(Link& link, std::span<std::byte> frame,
            const std::optional<csum::ChecksumPlace>& checksum) noexcept;
  // Whether `link` may gather from `slab`: what a link pins that is alone is nobody else's.
  [[nodiscard]] bool may_pin(const Link& link, const Slab& slab) const noexcept {
    return links_.size() == 1 || link.sends.pins(slab) || !link.sends.at_share();
  }
  [[nodiscard]] Summing summing() const noexcept {
    return options_.checksum == Checksum::FullSeparate ? Summing::Separate : Summing::Fused;
  }
  [[nodiscard]] std::optional<csum::ChecksumPlace> checksum_to_complete(
      const tun::VirtioNetHeader& header) const noexcept;
  [[nodiscard]] Link* link_to(PeerIndex peer, std::span<const std::byte> packet) noexcept;
  void flush(Link& link, TimePoint now) noexcept;
  void send_control(Link& link) noexcept;
  void account(Link& link) noexcept;

  const Options& options_;
  const RouteTable& routes_;
  Logger& logger_;
  EventFd& report_bell_;
  const unsigned index_;
  const int tun_;
  verbs::Device& device_;
  const Duration tick_;

  const ReceivePlan receive_plan_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::SharedReceiveQueue> shared_receives_;  // null without
  SlabPool slabs_;
  ReceiveBuffers buffers_;
  CreditPool credits_;
  Refusals refusals_;
  TooBigBudget too_big_budget_;
  // A segment being written, or a packet being cut.
  std::vector<std::byte> segment_ = std::vector<std::byte>(tun::kMaxRecord);

  SlabCursor reading_{slabs_};  // what the TUN is read into
  // What small packets are copied to and Control frames are written to: these must not pin what the
  // TUN is read into, or keepalives to a dead peer would pin a slab each.
  SlabCursor copying_{slabs_};

  std::vector<std::unique_ptr<Link>> links_;
  std::unordered_map<std::uint32_t, Link*> by_queue_pair_;
  std::vector<std::vector<Link*>> by_peer_;  // active ones

  // Receives to be posted: to the shared queue, or to the link's own.
  struct Repost {
    Link* link;
    std::uint32_t buffer;
  };
  Bounded<Repost> reposts_{kPollBatch};
  std::vector<ibv_recv_wr> receive_requests_;
  std::vector<ibv_sge> receive_elements_;
  Bounded<std::uint32_t> spare_buffers_;  // not posted; room for all of them
  std::uint32_t posted_ = 0;              // on the shared queue

  // Where the next turn is to look.
  struct Look {
    bool completions = true;
    bool tun = true;
  };
  Look look_;
  bool completions_left_ = false;  // the last turn found as many as it asked for
  bool packets_left_ = false;      // it did not see the end of the TUN's queue
  enum class Source : std::uint8_t { Completions, Commands, Tun, Tick };  // that end a sleep
  Epoll epoll_;
  Timer tick_timer_;
  bool watching_tun_ = false;
  bool armed_ = false;
  bool armed_for_all_ = false;
  bool tun_failed_ = false;  // a read failed: not tried again before the next tick
  TimePoint now_{};          // of this turn
  TimePoint last_work_{};
  bool packets_in_batches_ = false;  // the TUN had more than one packet when that was looked for
  std::uint32_t lone_turns_ = 0;     // that took that not to be so; wraps
  TimePoint next_tick_{};
  std::optional<TimePoint> last_tick_;

  Counters counters_;
  DoorbellSizes doorbells_;
  std::vector<PeerGauges> peer_gauges_;

  EventFd command_bell_;
  std::atomic<bool> has_commands_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Command> commands_;
  std::vector<Report> reports_;
  std::thread thread_;
};

}  // namespace ipoverbs::transport
