#include "transport/worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::transport {

namespace {

// Completions that may stand in the queue beside those of every receive: every send of a few
// sessions. An overrun would end them all, hence a generous number; the device's limit bounds it.
constexpr std::uint32_t kSendCompletions = 16384;

// Without a shared receive queue each session has a pool of its own.
ReceivePlan shared_plan(const Options& options, const verbs::Capabilities& can) {
  if (!can.has_srq()) return {};
  return plan_receives(options.peers.size(), options.receive_buffers, can.max_srq_wr);
}

// A keepalive is sent up to a tick late, and must come before the far end, whose options are taken
// to be ours, has counted its dead time.
Duration tick_of(const Options& options) {
  const Duration wanted = std::min(options.keepalive, (options.dead_time - options.keepalive) / 2);
  return std::clamp(wanted, kShortestTick, kLongestTick);
}

void pin_to_nth_cpu(unsigned n, Logger& logger) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto count = static_cast<unsigned>(CPU_COUNT(&allowed));
  unsigned left = n % std::max(1U, count);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (::pthread_setaffinity_np(::pthread_self(), sizeof one, &one) != 0) {
      logger.warn("worker {}: cannot be pinned to CPU {}", n, cpu);
    }
    return;
  }
}

}  // namespace

Worker::Worker(verbs::Device& device, int tun_queue, unsigned index, const Options& options,
               const RouteTable& routes, EventFd& report_bell, Logger& logger)
    : options_(options),
      routes_(routes),
      logger_(logger),
      report_bell_(report_bell),
      index_(index),
      tun_(tun_queue),
      device_(device),
      tick_(tick_of(options)),
      receive_plan_(shared_plan(options, device.capabilities())),
      completions_(device.create_completion_queue(
          std::min(receive_plan_.places + kSendCompletions, device.capabilities().max_cqe))),
      slabs_(device, options.slabs),
      buffers_(device),
      credits_(receive_plan_),
      by_peer_(options.peers.size()),
      receive_requests_(kPollBatch),
      receive_elements_(kPollBatch),
      peer_gauges_(options.peers.size()) {
  completions_->watch(epoll_, static_cast<std::uint32_t>(Source::Completions));
  epoll_.add(command_bell_.fd(), static_cast<std::uint32_t>(Source::Commands));
  epoll_.add(tick_timer_.fd(), static_cast<std::uint32_t>(Source::Tick));
  tick_timer_.set_every(tick_);
  if (!device.capabilities().has_srq()) return;
  shared_receives_ = device.create_shared_receive_queue(receive_plan_.places);
  add_buffers(receive_plan_.shared);
  if (index == 0 && receive_plan_.shared < options.receive_buffers) {
    logger_.warn("receive buffers: {} are shared, not {}: the device's receive queue has {} places",
                 receive_plan_.shared, options.receive_buffers, receive_plan_.places);
  }
}

Worker::~Worker() {
  stop();
  links_.clear();
}

void Worker::start() {
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  command_bell_.ring();
  thread_.join();
}

verbs::QueuePairConfig Worker::queue_pair_config() const {
  const verbs::Capabilities& can = device_.capabilities();
  verbs::QueuePairConfig config;
  config.completion_queue = completions_.get();
  config.shared_receive_queue = shared_receives_.get();
  config.send_depth = std::min(options_.send_depth, can.max_qp_wr);
  config.receive_depth = std::min(kSessionReceives + options_.receive_buffers, can.max_qp_wr);
  config.send_sge = std::min(can.max_send_sge, SendQueue::kMaxGather);
  return config;
}

SendQueue::Limits Worker::send_limits() const {
  const verbs::QueuePairConfig config = queue_pair_config();
  SendQueue::Limits limits;
  limits.depth = config.send_depth;
  limits.max_gather = config.send_sge;
  limits.packets_per_message = options_.packets_per_message;
  limits.messages_per_doorbell = options_.messages_per_doorbell;
  limits.signal_interval = options_.signal_interval;
  limits.window_bytes = options_.window_bytes;
  return limits;
}

void Worker::run() noexcept {
  ::pthread_setname_np(::pthread_self(), fmt::format("ipov-worker-{}", index_).c_str());
  if (options_.pin_workers) pin_to_nth_cpu(index_, logger_);
  last_work_ = monotonic_now();
  while (!stopping_.load(std::memory_order_relaxed)) {
    const TimePoint now = monotonic_now();
    if (turn(now) > 0) last_work_ = now;
    if (completions_left_ || packets_left_ || now - last_work_ < options_.spin) continue;
    wait(now);
  }
}

int Worker::turn(TimePoint now) noexcept {
  now_ = now;
  if (has_commands_.load(std::memory_order_acquire)) run_commands();
  const Look look = std::exchange(look_, Look{});
  int work = 0;
  if (look.completions) {
    work += receive(now);
    completions_left_ = work == kPollBatch;
  }
  packets_left_ = false;
  work += transmit(now, look.tun);
  if (now >= next_tick_) tick(now);
  return work;
}

void Worker::wait(TimePoint now) noexcept {
  const bool blocked = std::ranges::any_of(links_, [](const auto& link) {
    const bool for_slabs = !link->waiting.empty() && link->sends.at_share();
    return link->active && link->sends.in_flight() > 0 && (!link->sends.has_room() || for_slabs);
  });
  const bool for_all = blocked || slabs_.free_count() == 0;
  if (!armed_ || (for_all && !armed_for_all_)) {
    if (ibv_req_notify_cq(completions_->raw(), for_all ? 0 : 1) != 0) return;
    armed_ = true;
    armed_for_all_ = for_all;
    if (receive(now) > 0) {
      last_work_ = now;
      return;
    }
  }
  sleep();
}

void Worker::sleep() noexcept {
  // A TUN that is unread on purpose, or whose interface is gone (EPOLLERR comes unasked), must not
  // end the sleep at once for ever.
  watch_tun(may_read());
  std::array<epoll_event, 6> events;
  bool tun_ready = false;
  for (const epoll_event& event : epoll_.wait(events)) {
    switch (static_cast<Source>(event.data.u32)) {
      case Source::Completions:
        completions_->consume_events();
        armed_ = false;
        break;
      case Source::Commands:
        command_bell_.silence();
        break;
      case Source::Tun:
        tun_ready = true;
        break;
      case Source::Tick:
        tick_timer_.consume();
        next_tick_ = TimePoint{};
        armed_ = false;  // polls, should a peer have sent something unsolicited
        break;
    }
  }
  // While it is armed nothing has come to the completion queue but ends of our own sends: of those
  // that were signalled, or failed, which on rdma_rxe makes no event either; a tick finds that.
  const bool ends_due =
      std::ranges::any_of(links_, [](const auto& link) { return link->sends.awaits_completion(); });
  look_ = {.completions = !armed_ || ends_due, .tun = tun_ready || !watching_tun_};
}

void Worker::watch_tun(bool watch) noexcept {
  if (watch == watching_tun_) return;
  if (watch) {
    watching_tun_ = epoll_.try_add(tun_, static_cast<std::uint32_t>(Source::Tun));
  } else {
    epoll_.remove(tun_);
    watching_tun_ = false;
  }
}

void Worker::tick(TimePoint now) noexcept {
  next_tick_ = now + tick_;
  tun_failed_ = false;
  // While this worker was not run, messages came that it has not taken yet: that is not its peers'
  // silence.
  const Duration missed = std::max(now - last_tick_.value_or(now) - tick_, Duration{0});
  last_tick_ = now;
  for (const auto& link : links_) {
    link->last_received = std::min(link->last_received + missed, now);
    link->gauges->send_credits.set(link->send_credits);
    link->gauges->receive_window.set(link->grantor.window());
    link->gauges->queued_packets.set(link->waiting.count());
    link->control_allowance.on_tick(link->sends.totals().messages);
    if (!link->active) continue;
    // The last messages before a pause are given back by a Control message after them.
    const Duration quiet = link->sends.unsignalled() > 0 ? tick_ : options_.keepalive;
    if (now - link->last_received > options_.dead_time) {
      fail(*link, fmt::format("nothing was received for {} ms",
                              options_.dead_time / std::chrono::milliseconds(1)));
    } else if (now - link->last_sent >= quiet && !link->waits_for_first) {
      send_control(*link);
      flush(*link, now);
    }
    tell_capabilities(*link);
  }
}

}  // namespace ipoverbs::transport
