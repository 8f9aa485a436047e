#include "verbs/soft/soft_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::verbs::soft {

namespace {

// Whether this host could send there now: 0, or why not.
int route_error(const Endpoint& local, const Endpoint& remote) {
  const Fd probe(
      ::socket(local.address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno;
  // Connecting a UDP socket looks the route up and sends nothing.
  const sockaddr_storage address = Endpoint{remote.address, kRocePort, local.scope}.to_sockaddr();
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
             ? 0
             : errno;
}

void require_size(std::span<const std::byte> private_data, std::size_t limit, const char* what) {
  if (private_data.size() <= limit) return;
  throw SystemError(EINVAL, fmt::format("{} with {} bytes of private data, at most {}", what,
                                        private_data.size(), limit));
}

}  // namespace

SoftConnection::SoftConnection(Control& control, const RemoteAddress& remote,
                               const PathOptions& path)
    : control_(control),
      remote_(remote.endpoint),
      traffic_class_(path.traffic_class.value_or(0)),
      path_mtu_(control.path_mtu()) {
  const Endpoint& local = control.device().local;
  const std::string to = remote_.to_string();
  if (remote.by_gid) throw SystemError(EAFNOSUPPORT, fmt::format("dial GID {}", to));
  if (remote_.address.family() != local.address.family()) {
    throw SystemError(EAFNOSUPPORT, fmt::format("dial {} from {}", to, local.address.to_string()));
  }
  if (remote_.address.is_unspecified() || remote_.address.is_multicast()) {
    throw SystemError(EADDRNOTAVAIL, fmt::format("dial {}", to));
  }
  if (const int error = route_error(local, remote_); error != 0) {
    control.queue({EventKind::Failed,
                   this,
                   nullptr,
                   {},
                   fmt::format("no route to {}: {}", remote_.address.to_string(),
                               std::generic_category().message(error)),
                   -error});
    return;
  }
  control.queue({EventKind::RouteResolved, this, nullptr, {}, {}, 0});
}

SoftConnection::SoftConnection(Control& control, const CmEvent& request)
    : control_(control),
      remote_(request.remote),
      path_mtu_(request.path_mtu),
      id_(request.connection) {
  control.name(id_, *this);
}

SoftConnection::~SoftConnection() {
  control_.forget(*this);
  if (queue_pair_) {
    Worker& worker = completions_->worker();
    worker.hand_over([qp = queue_pair_](Engine& engine) { engine.remove(qp->number()); });
    worker.settle();
  }
  if (id_ != CommId(0)) {
    control_.machine().release(id_, control_.device().time.now());
    control_.drain();
  }
}

void SoftConnection::create_queue_pair(const QueuePairConfig& config) {
  auto* const completions = static_cast<SoftCompletionQueue*>(config.completion_queue);
  auto* const shared = static_cast<SoftSharedReceiveQueue*>(config.shared_receive_queue);
  if (queue_pair_ || completions == nullptr || config.send_depth == 0 ||
      config.send_sge > kMaxSendSge || (shared == nullptr && config.receive_depth == 0)) {
    throw SystemError(EINVAL,
                      fmt::format("create a queue pair with {} sends of {} SGEs and {} "
                                  "receives",
                                  config.send_depth, config.send_sge, config.receive_depth));
  }
  QueuePairSetup setup;
  setup.number = control_.numbers().next(completions->slot());
  setup.send_depth = config.send_depth;
  setup.receive_depth = config.receive_depth;
  setup.send_sge = config.send_sge;
  setup.context = &control_.device().context;
  setup.cq = completions->raw();
  if (shared != nullptr) {
    setup.shared = &shared->receives().queue();
    setup.srq = shared->raw();
  }
  queue_pair_ = std::make_shared<QueuePair>(setup, completions->worker().engine().completions(),
                                            control_.device().memory);
  completions_ = completions;
  control_.name(setup.number, *this);
}

void SoftConnection::require_queue_pair(const char* tried) const {
  if (!queue_pair_) {
    throw SystemError(EINVAL,
                      fmt::format("{} {} without a queue pair", tried, remote_.to_string()));
  }
}

CmQueuePair SoftConnection::cm_queue_pair() const {
  CmQueuePair qp;
  qp.number = queue_pair_->number();
  qp.srq = queue_pair_->srq != nullptr;
  qp.rnr_retry = control_.timers().rnr_retry;
  qp.ack_timeout = control_.timers().ack_timeout;
  return qp;
}

void SoftConnection::connect(std::span<const std::byte> private_data) {
  require_queue_pair("connect to");
  require_size(private_data, kConnectPrivateData, "connect");
  if (id_ != CommId(0)) {
    throw SystemError(EISCONN, fmt::format("connect to {}", remote_.to_string()));
  }
  std::ranges::copy(private_data, private_data_.begin());
  private_size_ = private_data.size();
  send_request();
}

void SoftConnection::send_request() {
  CmConnectRequest request;
  request.remote = remote_.address;
  request.port = remote_.port;
  request.path_mtu = path_mtu_;
  request.retry_count = control_.timers().retry_count;
  request.traffic_class = traffic_class_;
  request.private_data = std::span(private_data_).first(private_size_);
  const auto id =
      control_.machine().connect(request, cm_queue_pair(), control_.device().time.now());
  if (!id) {
    throw SystemError(EAGAIN,
                      fmt::format("connect to {}: too many connections", remote_.to_string()));
  }
  id_ = *id;
  control_.name(id_, *this);
  control_.drain();
}

bool SoftConnection::dials_again(const CmEvent& event) {
  constexpr std::uint32_t kSmallest = 256;
  if (event.kind != CmEventKind::Rejected || event.reason != RejectReason::InvalidPathMtu ||
      path_mtu_.value() <= kSmallest) {
    return false;
  }
  control_.machine().release(id_, control_.device().time.now());
  path_mtu_ = PathMtu(path_mtu_.value() / 2);
  send_request();
  return true;
}

void SoftConnection::accept(std::span<const std::byte> private_data) {
  require_queue_pair("accept");
  require_size(private_data, kAcceptPrivateData, "accept");
  // If it is too late, Failed is on its way.
  static_cast<void>(
      control_.machine().accept(id_, cm_queue_pair(), private_data, control_.device().time.now()));
  control_.drain();
}

void SoftConnection::reject(std::span<const std::byte> private_data) {
  require_size(private_data, kRejectPrivateData, "reject");
  static_cast<void>(control_.machine().reject(id_, private_data, control_.device().time.now()));
  control_.drain();
}

void SoftConnection::disconnect() noexcept {
  flush_queue_pair();
  if (id_ == CommId(0)) return;
  control_.machine().disconnect(id_, control_.device().time.now());
  control_.drain();
}

void SoftConnection::connect_queue_pair(const CmQueuePairConnect& how) {
  if (!queue_pair_) return;
  path_mtu_ = how.path_mtu;
  const Endpoint& local = control_.device().local;
  const Path path(completions_->local(), {how.remote, kRocePort, local.scope}, how.traffic_class);
  const ResponderConfig responder{how.remote_qp, how.receive_psn, how.path_mtu.value(),
                                  control_.timers().min_rnr_timer};
  RequesterConfig requester;
  requester.destination = how.remote_qp;
  requester.first = how.send_psn;
  requester.mtu = how.path_mtu.value();
  requester.retry_count = how.retry_count;
  requester.rnr_retry = how.rnr_retry;
  requester.ack_timeout = how.ack_timeout;
  requester.window_limit = completions_->window_limit();
  completions_->worker().hand_over([qp = queue_pair_, path, responder, requester](Engine& engine) {
    engine.add(qp);
    qp->connect_receive(path, responder);
    qp->connect_send(requester);
  });
}

void SoftConnection::flush_queue_pair() {
  if (!queue_pair_) return;
  completions_->worker().hand_over([qp = queue_pair_](Engine&) { qp->to_error(); });
}

QueuePairAttributes SoftConnection::attributes() const {
  require_queue_pair("query");
  return {queue_pair_->number(), path_mtu_, control_.timers().ack_timeout,
          control_.timers().min_rnr_timer};
}

}  // namespace ipoverbs::verbs::soft
