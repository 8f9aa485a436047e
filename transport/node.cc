#include "transport/node.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "transport/node_impl.h"

namespace ipoverbs::transport {

namespace {
constexpr Duration kReopenInterval = std::chrono::milliseconds(500);
}  // namespace

Node::Node(Options options, std::span<const int> tun_queues, DeviceOpener opener,
           std::uint64_t node_id, Logger& logger, TimePoint now)
    : impl_(std::make_unique<Impl>(std::move(options), tun_queues, std::move(opener),
                                   NodeId(node_id), logger, now)) {}
Node::~Node() = default;
int Node::event_fd() const { return impl_->event_fd(); }
TimePoint Node::next_deadline() const { return impl_->next_deadline(); }
void Node::process(TimePoint now) { impl_->process(now); }
Status Node::status(TimePoint now) const { return impl_->status(now); }
std::uint32_t Node::peer_capabilities() const { return impl_->peer_capabilities(); }

Node::Impl::Impl(Options options, std::span<const int> tun_queues, DeviceOpener opener, NodeId id,
                 Logger& logger, TimePoint now)
    : options_(std::move(options)),
      routes_(options_.peers, options_.own),
      tun_queues_(tun_queues.begin(), tun_queues.end()),
      opener_(std::move(opener)),
      id_(id),
      logger_(logger),
      now_(now),
      peers_(options_.peers.size()),
      past_totals_(options_.peers.size()) {
  epoll_.add(report_bell_.fd());
  for (PeerIndex i = 0; i < peers_.size(); ++i) match_sessions(i, 1);
  open_device();
}

Node::Impl::~Impl() { close_device("shutting down"); }

void Node::Impl::open_device() {
  auto fabric = std::make_unique<Fabric>();
  fabric->device = opener_();
  for (unsigned i = 0; i < tun_queues_.size(); ++i) {
    fabric->workers.push_back(std::make_unique<Worker>(*fabric->device, tun_queues_[i], i, options_,
                                                       routes_, report_bell_, logger_));
  }
  try {
    fabric->device->listen(options_.port);
  } catch (const SystemError& error) {
    if (error.code().value() != EADDRINUSE) throw;
    throw UsageError(
        fmt::format("port {}: taken by another program on this address; is a second "
                    "ipoverbs running? Choose another --port for both ends",
                    options_.port));
  }
  if (withdrawn_ != 0) {
    for (const auto& worker : fabric->workers) worker->submit(Withdraw{withdrawn_});
  }
  epoll_.add(fabric->device->event_fd());
  fabric_ = std::move(fabric);
  for (const auto& worker : fabric_->workers) worker->start();
  last_capabilities_ = fabric_->device->capabilities();
  device_state_ = "up";
  reopen_at_ = TimePoint::max();
}

void Node::Impl::close_device(const std::string& why) {
  if (!fabric_) return;
  for (const auto& worker : fabric_->workers) worker->stop();
  keep_counts();
  for (Peer& peer : peers_) {
    for (Session& session : peer.sessions) {
      session.connection.reset();
      session.link.reset();
      session.machine.on_failed(why, now_);
    }
  }
  fabric_->retired.clear();
  fabric_->workers.clear();
  // epoll forgets the device's descriptor when the device closes it.
  fabric_.reset();
}

void Node::Impl::keep_counts() {
  for (const auto& worker : fabric_->workers) {
    past_doorbells_.add(worker->doorbells());
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      past_counters_[i] += worker->counters().value(static_cast<Counter>(i));
    }
    for (PeerIndex p = 0; p < peers_.size(); ++p) {
      const PeerGauges& g = worker->peer_gauges(p);
      past_totals_[p].tx_packets += g.tx_packets.value();
      past_totals_[p].tx_bytes += g.tx_bytes.value();
      past_totals_[p].rx_packets += g.rx_packets.value();
      past_totals_[p].rx_bytes += g.rx_bytes.value();
    }
  }
}

TimePoint Node::Impl::next_deadline() const {
  if (!fabric_) return reopen_at_;
  TimePoint first = TimePoint::max();
  for (const Peer& peer : peers_) {
    for (const Session& session : peer.sessions) {
      first = std::min(first, session.machine.next_deadline());
    }
  }
  return first;
}

void Node::Impl::process(TimePoint now) {
  now_ = now;
  if (fabric_) fabric_->device->process_events(*this);
  if (std::exchange(removed_, false)) {
    logger_.warn("device {} was removed; waiting for it to come back", last_capabilities_.device);
    close_device("the device was removed");
    device_state_ = "removed";
    reopen_at_ = now_ + kReopenInterval;
  }
  process_reports();
  process_timers();
}

void Node::Impl::process_reports() {
  report_bell_.silence();
  if (!fabric_) return;
  for (const auto& worker : fabric_->workers) {
    for (const Report& report : worker->take_reports()) {
      if (report.kind == Report::Kind::Detached) finish_retired(report.link);
      if (report.kind == Report::Kind::Withdrawn) withdraw(report.capabilities);
      Session* session = find(report.link);
      if (session == nullptr) continue;  // given up in the meantime
      if (report.kind == Report::Kind::Attached) on_attached(*session);
      if (report.kind == Report::Kind::Failed) fail(*session, report.why);
      if (report.kind == Report::Kind::PeerWithdrew) {
        peer_of(*session).capabilities &= report.capabilities;
      }
    }
  }
}

void Node::Impl::withdraw(std::uint32_t capabilities) {
  if ((capabilities & ~withdrawn_) == 0) return;
  withdrawn_ |= capabilities;
  logger_.warn(
      "the kernel refuses packets of a kind that it took before: {}. They are cut, or summed, "
      "here, and peers are asked for no more of them",
      describe_capabilities(withdrawn_));
  for (const auto& worker : fabric_->workers) worker->submit(Withdraw{withdrawn_});
}

void Node::Impl::process_timers() {
  if (!fabric_ && now_ >= reopen_at_) {
    try {
      open_device();
      logger_.info("device {} is back", last_capabilities_.device);
    } catch (const std::exception& error) {
      const std::string state = fmt::format("removed: {}", error.what());
      if (std::exchange(device_state_, state) != state) logger_.warn("{}", state);
      reopen_at_ = now_ + kReopenInterval;
    }
  }
  if (!fabric_) return;
  for (PeerIndex p = 0; p < peers_.size(); ++p) {
    for (unsigned i = 0; i < peers_[p].sessions.size(); ++i) {
      Session& session = peers_[p].sessions[i];
      switch (session.machine.tick(now_)) {
        case SessionMachine::Action::None:
          break;
        case SessionMachine::Action::Dial:
          dial(p, i);
          break;
        case SessionMachine::Action::Drop:
          tell(session, session.machine.last_error());
          retire(session);
          break;
      }
    }
  }
}

}  // namespace ipoverbs::transport
