#include "verbs/soft/soft_connection.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/soft/connections.h"
#include "verbs/soft/ecn.h"
#include "verbs/soft/soft_queues.h"

namespace ipoverbs::verbs::soft {

namespace {

void require_size(std::span<const std::byte> private_data, std::size_t limit, const char* what) {
  if (private_data.size() <= limit) return;
  throw SystemError(EINVAL, fmt::format("{} with {} bytes of private data, at most {}", what,
                                        private_data.size(), limit));
}

}  // namespace

SoftConnection::SoftConnection(Connections& connections, const Endpoint& remote, PathMtu path_mtu,
                               std::uint8_t traffic_class)
    : connections_(connections),
      state_(State::Resolving),
      remote_(remote),
      traffic_class_(traffic_class),
      path_mtu_(path_mtu) {
  connections.add(*this);
}

SoftConnection::SoftConnection(Connections& connections, CommId id, const Endpoint& remote,
                               PathMtu path_mtu)
    : connections_(connections),
      state_(State::Requested),
      remote_(remote),
      path_mtu_(path_mtu),
      id_(id) {
  connections.add(*this);
  connections.identify(*this, id);
}

SoftConnection::~SoftConnection() {
  if (queue_pair_) {
    worker_->hand_over([qp = queue_pair_](Engine& engine) { engine.remove(qp->number()); });
    worker_->settle();
  }
  connections_.remove(*this);
}

// Whether it is the time for it.
void SoftConnection::require(bool good, const char* tried) const {
  if (good) return;
  throw SystemError(EINVAL, fmt::format("{} {} out of turn", tried, remote_.to_string()));
}

void SoftConnection::create_queue_pair(const QueuePairConfig& config) {
  require((state_ == State::Ready || state_ == State::Requested) && !queue_pair_,
          "create a queue pair to");
  const ConnectionsConfig& limits = connections_.config();
  const bool shared = config.shared_receive_queue != nullptr;
  const auto within = [](std::uint32_t n, std::uint32_t most) { return n >= 1 && n <= most; };
  if (config.completion_queue == nullptr || !within(config.send_depth, limits.max_send_wr) ||
      !within(config.send_sge, kMaxSendSge) ||
      !(shared || within(config.receive_depth, limits.max_recv_wr))) {
    throw SystemError(EINVAL,
                      fmt::format("create a queue pair with {} sends of {} SGEs and {} "
                                  "receives",
                                  config.send_depth, config.send_sge, config.receive_depth));
  }
  const QueuePairPlace place = connections_.host().place_queue_pair(*config.completion_queue);
  QueuePairSetup setup;
  setup.number = place.number;
  setup.send_depth = config.send_depth;
  setup.receive_depth = config.receive_depth;
  setup.send_sge = config.send_sge;
  setup.context = &connections_.context();
  setup.cq = config.completion_queue->raw();
  if (shared) {
    setup.srq = config.shared_receive_queue->raw();
    setup.shared = &static_cast<SharedReceives*>(setup.srq)->queue();
  }
  worker_ = static_cast<Worker*>(setup.cq);
  sends_from_ = place.local;
  window_limit_ = place.window_limit;
  queue_pair_ =
      std::make_shared<QueuePair>(setup, worker_->engine().completions(), connections_.memory());
}

CmQueuePair SoftConnection::cm_queue_pair() const {
  const ConnectionTimers& timers = connections_.config().timers;
  CmQueuePair qp;
  qp.number = queue_pair_->number();
  qp.srq = queue_pair_->srq != nullptr;
  qp.rnr_retry = timers.rnr_retry;
  qp.ack_timeout = timers.ack_timeout;
  return qp;
}

void SoftConnection::connect(std::span<const std::byte> private_data) {
  require(state_ == State::Ready && queue_pair_, "connect to");
  require_size(private_data, kConnectPrivateData, "connect");
  std::ranges::copy(private_data, private_data_.begin());
  private_size_ = private_data.size();
  send_request();
  state_ = State::Connecting;
}

void SoftConnection::send_request() {
  CmConnectRequest request;
  request.remote = remote_.address;
  request.port = remote_.port;
  request.path_mtu = path_mtu_;
  request.retry_count = connections_.config().timers.retry_count;
  request.traffic_class = traffic_class_;
  request.private_data = std::span(private_data_).first(private_size_);
  const auto id = connections_.manager().connect(request, cm_queue_pair(), connections_.now());
  if (!id) {
    throw SystemError(
        EAGAIN, fmt::format("connect to {}, beside too many connections", remote_.to_string()));
  }
  id_ = id;
  connections_.identify(*this, *id);
  connections_.carry_out();
}

bool SoftConnection::dials_again(const CmEvent& event) {
  constexpr std::uint32_t kSmallest = 256;
  if (event.kind != CmEventKind::Rejected || event.reason != RejectReason::InvalidPathMtu ||
      path_mtu_.value() <= kSmallest) {
    return false;
  }
  connections_.forget(*this);
  path_mtu_ = PathMtu(path_mtu_.value() / 2);
  send_request();
  return true;
}

void SoftConnection::accept(std::span<const std::byte> private_data) {
  require(state_ == State::Requested && queue_pair_, "accept");
  require_size(private_data, kAcceptPrivateData, "accept");
  state_ = State::Connecting;
  // If it is too late, Failed is on its way.
  static_cast<void>(
      connections_.manager().accept(*id_, cm_queue_pair(), private_data, connections_.now()));
  connections_.carry_out();
}

void SoftConnection::reject(std::span<const std::byte> private_data) {
  require(state_ == State::Requested, "reject");
  require_size(private_data, kRejectPrivateData, "reject");
  state_ = State::Over;
  static_cast<void>(connections_.manager().reject(*id_, private_data, connections_.now()));
  connections_.carry_out();
}

void SoftConnection::disconnect() noexcept {
  on_flush();
  if (!id_) return;
  connections_.manager().disconnect(*id_, connections_.now());
  connections_.carry_out();
}

void SoftConnection::on_connect(const CmQueuePairConnect& how) {
  if (!queue_pair_) return;
  path_mtu_ = how.path_mtu;
  // Answers are sent as capable of ECN as well: where a queue marks those that are, it drops
  // others.
  const Path path(sends_from_, {how.remote, kRocePort, sends_from_.scope},
                  with_ecn(how.traffic_class, Ecn::Capable0));
  const ResponderConfig responder{how.remote_qp, how.receive_psn, how.path_mtu.value(),
                                  connections_.config().timers.min_rnr_timer, RcTuning{}.ack_delay};
  RequesterConfig requester;
  requester.destination = how.remote_qp;
  requester.first = how.send_psn;
  requester.mtu = how.path_mtu.value();
  requester.retry_count = how.retry_count;
  requester.rnr_retry = how.rnr_retry;
  requester.ack_timeout = how.ack_timeout;
  requester.window_limit = window_limit_;
  worker_->hand_over([qp = queue_pair_, path, responder, requester](Engine& engine) {
    engine.add(qp);
    qp->connect_receive(path, responder);
    qp->connect_send(requester);
  });
}

void SoftConnection::on_event(EventKind kind) {
  switch (kind) {
    case EventKind::RouteResolved:
      state_ = State::Ready;
      break;
    case EventKind::Established:
      state_ = State::Connected;
      break;
    case EventKind::Rejected:
    case EventKind::Failed:
    case EventKind::Disconnected:
      state_ = State::Over;
      break;
    default:
      break;
  }
}

void SoftConnection::on_flush() {
  if (!queue_pair_) return;
  worker_->hand_over([qp = queue_pair_](Engine&) { qp->to_error(); });
}

QueuePairAttributes SoftConnection::attributes() const {
  require(queue_pair_ != nullptr, "query the queue pair to");
  const ConnectionTimers& timers = connections_.config().timers;
  return {queue_pair_->number(), path_mtu_, timers.ack_timeout, timers.min_rnr_timer};
}

}  // namespace ipoverbs::verbs::soft
