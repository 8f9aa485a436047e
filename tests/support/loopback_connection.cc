#include "tests/support/loopback_connection.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"

namespace ipoverbs::support {
namespace {

using State = Identity::State;
using verbs::EventKind;

std::vector<std::byte> bytes_of(std::span<const std::byte> span) {
  return {span.begin(), span.end()};
}

// Private data fills its field, whatever was given.
std::vector<std::byte> padded(std::vector<std::byte> data, std::size_t size) {
  data.resize(size);
  return data;
}

void require(bool condition, int error, const std::string& tried) {
  if (!condition) throw SystemError(error, tried);
}

}  // namespace

void Exchange::add(LoopbackHost& host) { hosts_.push_back(&host); }

void Exchange::remove(LoopbackHost& host) {
  for (const PendingEvent& event : std::exchange(host.events, {})) {
    if (event.kind == EventKind::ConnectRequest) destroy(event.identity);
  }
  for (const auto& weak : identities_) {
    const auto id = weak.lock();
    assert((!id || id->host != &host || id->owner == nullptr) && "connections outlive the device");
  }
  std::erase(hosts_, &host);
  std::erase_if(listeners_, [&](const auto& listener) { return listener.second == &host; });
}

void Exchange::listen(LoopbackHost& host, std::uint16_t port) {
  const Endpoint local{host.context.underlay, port, 0};
  const std::string tried = "listen on " + local.to_string();
  require(!host.context.removed, ENODEV, tried);
  require(listeners_.emplace(local, &host).second, EADDRINUSE, tried);
}

std::shared_ptr<Identity> Exchange::dial(LoopbackHost& host, const Endpoint& remote) {
  require(!host.context.removed, ENODEV, "resolve " + remote.to_string());
  auto id = std::make_shared<Identity>();
  id->host = &host;
  id->local = {host.context.underlay, next_port_++, 0};
  id->remote = {remote.address, remote.port, 0};
  std::erase_if(identities_, [](const auto& weak) { return weak.expired(); });
  identities_.push_back(id);
  send({.say = Say::Resolve, .from = id});
  return id;
}

void Exchange::connect(const std::shared_ptr<Identity>& id,
                       std::span<const std::byte> private_data) {
  const std::string tried = fmt::format("connect to {} with {} bytes of private data",
                                        id->remote.to_string(), private_data.size());
  require(!id->host->context.removed, ENODEV, tried);
  require(id->state == State::Resolved && id->qp, EINVAL, tried);
  require(private_data.size() <= verbs::kConnectPrivateData, EINVAL, tried);
  id->state = State::Requesting;
  send({.say = Say::Request, .from = id, .private_data = bytes_of(private_data)});
}

void Exchange::accept(const std::shared_ptr<Identity>& id,
                      std::span<const std::byte> private_data) {
  const std::string tried = fmt::format("accept {} with {} bytes of private data",
                                        id->remote.to_string(), private_data.size());
  require(!id->host->context.removed, ENODEV, tried);
  require(id->state == State::Requested && id->qp, EINVAL, tried);
  require(private_data.size() <= verbs::kAcceptPrivateData, EINVAL, tried);
  id->state = State::Accepted;
  if (const auto peer = id->peer.lock(); peer && peer->qp) Queues::pair(*id->qp, *peer->qp);
  queues_.to_rts(*id->qp);
  send({.say = Say::Reply, .from = id, .to = id->peer, .private_data = bytes_of(private_data)});
}

void Exchange::reject(const std::shared_ptr<Identity>& id,
                      std::span<const std::byte> private_data) {
  const std::string tried = fmt::format("reject {} with {} bytes of private data",
                                        id->remote.to_string(), private_data.size());
  require(!id->host->context.removed, ENODEV, tried);
  require(id->state == State::Requested, EINVAL, tried);
  require(private_data.size() <= verbs::kRejectPrivateData, EINVAL, tried);
  id->state = State::Closed;
  send({.say = Say::Reject,
        .from = id,
        .to = id->peer,
        .private_data = bytes_of(private_data),
        .reason = kRejectConsumer});
}

void Exchange::disconnect(const std::shared_ptr<Identity>& id) {
  if (id->state == State::Established || id->state == State::DisconnectReceived) say_goodbye(id);
  if (id->qp && !id->host->context.removed) queues_.to_error(*id->qp);
}

void Exchange::destroy(const std::shared_ptr<Identity>& id) {
  say_goodbye(id);
  id->state = State::Closed;
  id->owner = nullptr;
  std::erase_if(id->host->events, [&](const PendingEvent& e) { return e.identity == id; });
  if (!id->qp) return;
  queues_.remove(*id->qp);
  id->qp.reset();
}

// What destroying an rdma_cm_id sends in each state (kernel, drivers/infiniband/core/cm.c,
// cm_destroy_id); of an established one rdma_disconnect sends the same, and waits for the answer.
void Exchange::say_goodbye(const std::shared_ptr<Identity>& id) {
  const State before = std::exchange(id->state, State::Closed);
  switch (before) {
    case State::Requesting:
      send({.say = Say::Reject, .from = id, .to = id->peer, .reason = kRejectTimeout});
      break;
    case State::Requested:
    case State::Accepted:
    case State::Answered:
      send({.say = Say::Reject, .from = id, .to = id->peer, .reason = kRejectConsumer});
      break;
    case State::Established:
      id->state = State::Disconnecting;
      send({.say = Say::Disconnect, .from = id, .to = id->peer});
      break;
    case State::DisconnectReceived:
      send({.say = Say::Bye, .from = id, .to = id->peer});
      break;
    case State::Disconnecting:
    case State::Idle:
    case State::Resolved:
    case State::Closed:
      break;
  }
}

PendingEvent Exchange::take_event(LoopbackHost& host) {
  PendingEvent event = std::move(host.events.front());
  host.events.pop_front();
  if (!event.identity) return event;
  Identity& id = *event.identity;
  switch (event.kind) {
    case EventKind::RouteResolved:
      id.state = State::Resolved;
      break;
    case EventKind::Established:
      if (id.state != State::Answered) break;
      id.state = State::Established;
      queues_.to_rts(*id.qp);
      send({.say = Say::ReadyToUse, .from = event.identity, .to = id.peer});
      break;
    case EventKind::Disconnected:
      if (id.state == State::DisconnectReceived) say_goodbye(event.identity);
      [[fallthrough]];
    case EventKind::Rejected:
    case EventKind::Failed:
      if (id.qp) queues_.to_error(*id.qp);
      break;
    default:
      break;
  }
  return event;
}

void Exchange::push_event(LoopbackHost& host, PendingEvent event) {
  if (host.context.removed && event.kind != EventKind::DeviceRemoved) return;
  host.events.push_back(std::move(event));
  host.bell.ring();
}

void Exchange::remove_device(const IpAddress& underlay) {
  for (LoopbackHost* host : hosts_) {
    if (host->context.underlay != underlay || host->context.removed) continue;
    for (const auto& weak : std::vector(identities_)) {
      const auto id = weak.lock();
      if (!id || id->host != host) continue;
      say_goodbye(id);
      id->state = State::Closed;
    }
    std::erase_if(listeners_, [&](const auto& listener) { return listener.second == host; });
    host->context.removed = true;
    host->events.clear();
    push_event(*host, {.kind = EventKind::DeviceRemoved, .detail = "the device was removed"});
  }
}

void Exchange::retry() {
  for (Message& message : std::exchange(held_, {})) send(std::move(message));
}

std::vector<std::uint32_t> Exchange::queue_pairs(const IpAddress& local,
                                                 const IpAddress& remote) const {
  std::vector<std::uint32_t> found;
  for (const auto& weak : identities_) {
    const auto id = weak.lock();
    if (id && id->qp && id->local.address == local && id->remote.address == remote) {
      found.push_back(id->qp->qp_num);
    }
  }
  return found;
}

std::shared_ptr<Identity> Exchange::owner_of(std::uint32_t qp_num) const {
  for (const auto& weak : identities_) {
    const auto id = weak.lock();
    if (id && id->qp && id->qp->qp_num == qp_num) return id;
  }
  assert(false && "no such queue pair");
  return nullptr;
}

void Exchange::report(const IpAddress& underlay, EventKind kind, const std::string& detail) {
  for (LoopbackHost* host : hosts_) {
    if (host->context.underlay == underlay) push_event(*host, {.kind = kind, .detail = detail});
  }
}

void Exchange::report(std::uint32_t qp_num, EventKind kind, const std::string& detail) {
  const auto id = owner_of(qp_num);
  if (kind == EventKind::QueuePairFailed) queues_.to_error(*id->qp);
  push_event(*id->host, {.kind = kind, .identity = id, .detail = detail});
}

void Exchange::send(Message message) {
  if (partitions_.reachable(message.from->local.address, message.from->remote.address)) {
    arrive(message);
  } else {
    held_.push_back(std::move(message));
  }
}

void Exchange::arrive(const Message& message) {
  const auto id = message.to.lock();
  switch (message.say) {
    case Say::Resolve:
      if (message.from->state != State::Idle) return;
      if (anyone_at(message.from->remote.address)) {
        push_event(*message.from->host,
                   {.kind = EventKind::RouteResolved, .identity = message.from});
      } else if (message.from->host->fail_unknown_at_once) {
        message.from->state = State::Closed;
        push_event(*message.from->host, {.kind = EventKind::Failed,
                                         .identity = message.from,
                                         .detail = "no device has this address",
                                         .status = -ETIMEDOUT});
      }
      return;
    case Say::Request:
      request_arrives(message);
      return;
    case Say::Reply:
      if (!id || id->state != State::Requesting) return;
      id->state = State::Answered;
      push_event(*id->host,
                 {.kind = EventKind::Established,
                  .identity = id,
                  .private_data = padded(message.private_data, verbs::kAcceptPrivateData)});
      return;
    case Say::ReadyToUse:
      if (!id || id->state != State::Accepted) return;
      id->state = State::Established;
      push_event(*id->host, {.kind = EventKind::Established, .identity = id});
      return;
    case Say::Reject:
      if (id) reject_arrives(id, message);
      return;
    case Say::Disconnect:
      if (id) disconnect_arrives(id, message);
      return;
    case Say::Bye:
      if (!id || id->state != State::Disconnecting) return;
      id->state = State::Closed;
      report_disconnected(id);
      return;
  }
}

void Exchange::request_arrives(const Message& message) {
  Identity& active = *message.from;
  if (active.state != State::Requesting || !anyone_at(active.remote.address)) return;
  const auto listener = listeners_.find(active.remote);
  if (listener == listeners_.end()) {
    reject_arrives(message.from, {.reason = kRejectNoListener});
    return;
  }
  auto passive = std::make_shared<Identity>();
  passive->host = listener->second;
  passive->state = State::Requested;
  passive->local = active.remote;
  passive->remote = active.local;
  passive->peer = message.from;
  active.peer = passive;
  identities_.push_back(passive);
  push_event(*passive->host,
             {.kind = EventKind::ConnectRequest,
              .identity = passive,
              .private_data = padded(message.private_data, verbs::kConnectPrivateData)});
}

void Exchange::reject_arrives(const std::shared_ptr<Identity>& id, const Message& message) {
  if (id->state == State::Closed) return;
  std::erase_if(id->host->events, [&](const PendingEvent& event) {
    return event.identity == id && event.kind == EventKind::Established;
  });
  id->state = State::Closed;
  if (id->qp) id->qp->closing = true;
  push_event(*id->host, {.kind = EventKind::Rejected,
                         .identity = id,
                         .private_data = padded(message.private_data, verbs::kRejectPrivateData),
                         .detail = fmt::format("the peer says REJ, reason {}", message.reason),
                         .status = message.reason});
}

void Exchange::disconnect_arrives(const std::shared_ptr<Identity>& id, const Message& message) {
  if (id->state == State::Established) {
    id->state = State::DisconnectReceived;
    if (id->qp) id->qp->closing = true;
    report_disconnected(id);
  } else if (id->state == State::Disconnecting) {
    // Both said so at once: each answers the other.
    id->state = State::Closed;
    send({.say = Say::Bye, .from = id, .to = message.from});
    report_disconnected(id);
  }
}

void Exchange::report_disconnected(const std::shared_ptr<Identity>& id) {
  push_event(*id->host,
             {.kind = EventKind::Disconnected, .identity = id, .detail = "disconnected"});
}

bool Exchange::anyone_at(const IpAddress& address) const {
  return std::ranges::any_of(hosts_, [&](const LoopbackHost* host) {
    return host->context.underlay == address && !host->context.removed;
  });
}

}  // namespace ipoverbs::support
