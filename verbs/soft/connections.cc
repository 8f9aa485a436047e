#include "verbs/soft/connections.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"

namespace ipoverbs::verbs::soft {

namespace {

CmConfig manager_config(const Endpoint& local, const ConnectionsConfig& config,
                        const ConnectionHost& host) {
  CmConfig out;
  out.local = local.address;
  out.max_path_mtu = config.path_mtu;
  out.path_mtu_to = [&host](const IpAddress& remote) { return host.route_to(remote).path_mtu; };
  return out;
}

// The seam's words for the manager's events.
EventKind kind_of(CmEventKind kind) {
  switch (kind) {
    case CmEventKind::ConnectRequest:
      return EventKind::ConnectRequest;
    case CmEventKind::Established:
      return EventKind::Established;
    case CmEventKind::Rejected:
      return EventKind::Rejected;
    case CmEventKind::Failed:
      return EventKind::Failed;
    case CmEventKind::Disconnected:
      return EventKind::Disconnected;
  }
  return EventKind::Failed;
}

std::string detail_of(const CmEvent& event) {
  if (event.reason) {
    return fmt::format("{} (reject reason {})", to_string(*event.reason),
                       std::to_underlying(*event.reason));
  }
  if (event.error == ETIMEDOUT) return "no answer";
  if (event.error == ECONNRESET) return "the far end has left before the connection was up";
  return {};
}

int status_of(const CmEvent& event) {
  if (event.kind == CmEventKind::Rejected) return std::to_underlying(*event.reason);
  return -event.error;
}

}  // namespace

Connections::Connections(ConnectionHost& host, GsiPort& port, const TimeSource& time,
                         ibv_context& context, const MemoryTable& memory,
                         const ConnectionsConfig& config)
    : host_(host),
      port_(port),
      time_(time),
      context_(context),
      memory_(memory),
      config_(config),
      manager_(manager_config(port.local(), config, host), config.seed) {}

Connections::~Connections() {
  // Requests that nobody has taken are rejected. Their destructors look into pending_.
  std::exchange(pending_, {}).clear();
  assert(connections_.empty() && "connections outlive the device");
}

void Connections::listen(std::uint16_t port) {
  if (!listening_.insert(port).second) {
    throw SystemError(EADDRINUSE,
                      "listen on " + Endpoint{local().address, port, local().scope}.to_string());
  }
  manager_.listen(port);
}

std::unique_ptr<Connection> Connections::dial(const RemoteAddress& remote,
                                              const PathOptions& path) {
  const IpAddress& to = remote.endpoint.address;
  const std::string tried =
      fmt::format("resolve {} from {}", to.to_string(), local().address.to_string());
  if (remote.by_gid || to.family() != local().address.family()) {
    throw SystemError(EAFNOSUPPORT, tried);
  }
  if (to.is_unspecified() || to.is_multicast()) throw SystemError(EADDRNOTAVAIL, tried);
  const Route route = host_.route_to(to);
  auto connection = std::make_unique<SoftConnection>(
      *this, Endpoint{to, remote.endpoint.port, local().scope},
      std::min(config_.path_mtu, route.path_mtu), path.traffic_class.value_or(0));
  if (route.error != 0) {
    push({.kind = EventKind::Failed,
          .connection = connection.get(),
          .detail = fmt::format("no route: {}", std::generic_category().message(route.error)),
          .status = -route.error});
  } else {
    push({.kind = EventKind::RouteResolved, .connection = connection.get()});
  }
  return connection;
}

// --- Events ----------------------------------------------------------------------------------

int Connections::process_events(EventHandler& handler) {
  const TimePoint now = time_.now();
  port_.receive(now, [&](const IpAddress& source, std::span<const std::byte> mad) {
    manager_.receive(source, mad, now);
    carry_out();
  });
  manager_.expire(now);
  carry_out();

  // What the handler brings about is for the next time, or it could go on for ever.
  int handed_on = 0;
  for (std::size_t left = pending_.size(); left > 0 && !pending_.empty(); --left, ++handed_on) {
    Pending event = std::move(pending_.front());
    pending_.pop_front();
    hand_on(std::move(event), handler);
  }
  if (!pending_.empty()) host_.wake();
  return handed_on;
}

void Connections::hand_on(Pending pending, EventHandler& handler) {
  if (pending.connection != nullptr) pending.connection->on_event(pending.kind);
  Event event;
  event.kind = pending.kind;
  event.connection = pending.connection;
  event.incoming = std::move(pending.incoming);
  event.private_data = pending.cause.private_data;
  event.detail = std::move(pending.detail);
  event.status = pending.status;
  handler.on_event(event);
}

void Connections::push(Pending event) {
  pending_.push_back(std::move(event));
  host_.wake();
}

std::optional<TimePoint> Connections::deadline() const {
  const auto timer = manager_.next_timer();
  const auto wire = port_.deadline();
  if (!timer || !wire) return timer ? timer : wire;
  return std::min(*timer, *wire);
}

// --- What the connection manager has put out -------------------------------------------------

void Connections::carry_out() {
  bool sent = false;
  while (const auto output = manager_.take()) {
    sent = sent || std::holds_alternative<CmSend>(*output);
    std::visit([this](const auto& o) { on_output(o); }, *output);
  }
  // What was sent may have to be sent again: deadline() has changed.
  if (sent) host_.wake();
}

void Connections::on_output(const CmSend& send) {
  port_.send(send.destination, send.mad, time_.now());
}

void Connections::on_output(const CmQueuePairConnect& connect) {
  if (SoftConnection* connection = find(connect.connection)) connection->on_connect(connect);
}

void Connections::on_output(const CmQueuePairFlush& flush) {
  if (SoftConnection* connection = find(flush.connection)) connection->on_flush();
}

void Connections::on_output(const CmEvent& event) {
  if (event.kind == CmEventKind::ConnectRequest) {
    auto incoming = std::make_unique<SoftConnection>(
        *this, event.connection, Endpoint{event.remote.address, event.remote.port, local().scope},
        event.path_mtu);
    push({.kind = EventKind::ConnectRequest, .incoming = std::move(incoming), .cause = event});
    return;
  }
  SoftConnection* connection = find(event.connection);
  if (connection != nullptr && !connection->dials_again(event)) {
    push({.kind = kind_of(event.kind),
          .connection = connection,
          .cause = event,
          .detail = detail_of(event),
          .status = status_of(event)});
  }
}

// --- What workers have found out -------------------------------------------------------------

void Connections::on_notice(QpNumber qp, ibv_wc_status status) {
  SoftConnection* connection = find(qp);
  if (connection == nullptr) return;
  if (status != IBV_WC_SUCCESS) {
    push({.kind = EventKind::QueuePairFailed,
          .connection = connection,
          .detail = fmt::format("the queue pair has failed, completion status {}",
                                std::to_underlying(status)),
          .status = static_cast<int>(status)});
  } else if (const auto id = connection->id()) {
    manager_.data_received(*id);
    carry_out();
  }
}

// --- The connections themselves --------------------------------------------------------------

void Connections::add(SoftConnection& connection) { connections_.insert(&connection); }

void Connections::remove(SoftConnection& connection) noexcept {
  connections_.erase(&connection);
  std::erase_if(pending_, [&](const Pending& p) { return p.connection == &connection; });
  forget(connection);
}

void Connections::forget(const SoftConnection& connection) noexcept {
  const auto id = connection.id();
  if (!id) return;
  by_id_.erase(*id);
  manager_.release(*id, time_.now());
  carry_out();
}

SoftConnection* Connections::find(CommId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

SoftConnection* Connections::find(QpNumber number) const {
  const auto found = std::ranges::find_if(connections_, [&](SoftConnection* c) {
    return c->queue_pair() != nullptr && c->queue_pair()->qp_num == number.value();
  });
  return found == connections_.end() ? nullptr : *found;
}

}  // namespace ipoverbs::verbs::soft
