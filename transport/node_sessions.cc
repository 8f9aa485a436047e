#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "transport/node_impl.h"

namespace ipoverbs::transport {

namespace {

template <class Peers, class Predicate>
Session* find_session(Peers& peers, Predicate matches) {
  for (auto& peer : peers) {
    for (Session& session : peer.sessions) {
      if (matches(session)) return &session;
    }
  }
  return nullptr;
}

// A link-local address belongs to its interface, where a device tells it (scope 0: it does not).
bool is_same_host(const Endpoint& a, const Endpoint& b) {
  return a.address == b.address && (a.scope == b.scope || a.scope == 0 || b.scope == 0);
}

}  // namespace

Session* Node::Impl::find(const verbs::Connection* connection) {
  if (connection == nullptr) return nullptr;
  return find_session(peers_, [&](const Session& s) { return s.connection.get() == connection; });
}

Session* Node::Impl::find(LinkId link) {
  return find_session(peers_, [&](const Session& s) { return s.link == link; });
}

// Several peers behind one address are told apart by the port on which they listen. Where it has
// one peer alone, it is that one, whatever the port: a node of an older version does not tell it.
std::optional<PeerIndex> Node::Impl::peer_at(const Endpoint& remote, std::uint16_t port) const {
  std::optional<PeerIndex> found;
  unsigned at_address = 0;
  for (PeerIndex i = 0; i < options_.peers.size(); ++i) {
    const Endpoint& peer = options_.peers[i].underlay.endpoint;
    if (!is_same_host(peer, remote)) continue;
    if (peer.port == port) return i;
    found = i;
    ++at_address;
  }
  return at_address == 1 ? found : std::nullopt;
}

PeerIndex Node::Impl::peer_index_of(const Session& session) const {
  const auto holds = [&](const Peer& peer) {
    return std::ranges::any_of(peer.sessions, [&](const Session& s) { return &s == &session; });
  };
  return static_cast<PeerIndex>(std::ranges::find_if(peers_, holds) - peers_.begin());
}

Peer& Node::Impl::peer_of(const Session& session) { return peers_[peer_index_of(session)]; }

unsigned Node::Impl::index_of(const Session& session) const {
  const Peer& peer = peers_[peer_index_of(session)];
  return static_cast<unsigned>(&session - peer.sessions.data());
}

std::string Node::Impl::describe(const Session& session) const {
  return fmt::format("peer {} session {}", options_.peers[peer_index_of(session)].name,
                     index_of(session));
}

Worker& Node::Impl::worker_of(unsigned index) {
  return *fabric_->workers[index % fabric_->workers.size()];
}

Hello Node::Impl::hello_for(unsigned index, const Session& session) const {
  Hello hello;
  hello.session_index = static_cast<std::uint8_t>(index);
  hello.workers = static_cast<std::uint8_t>(tun_queues_.size());
  hello.node_id = id_;
  hello.attempt = session.machine.attempt();
  hello.capabilities = options_.capabilities & ~withdrawn_;
  hello.max_message = kMaxMessage;
  hello.mtu = options_.mtu;
  hello.credits = kInitialCredits;
  hello.port = options_.port;
  return hello;
}

void Node::Impl::match_sessions(PeerIndex peer, unsigned workers_of_peer) {
  const std::size_t wanted =
      std::max<std::size_t>(tun_queues_.size(), std::min(workers_of_peer, kMaxWorkers));
  std::vector<Session>& sessions = peers_[peer].sessions;
  for (std::size_t i = wanted; i < sessions.size(); ++i) retire(sessions[i]);
  while (sessions.size() > wanted) sessions.pop_back();
  const SessionMachine::Timing timing{std::min(options_.first_timeout, options_.connect_timeout),
                                      options_.connect_timeout, options_.backoff_min,
                                      options_.backoff_max};
  while (sessions.size() < wanted) sessions.emplace_back(id_, timing, now_);
}

void Node::Impl::on_event(verbs::Event& event) {
  if (event.kind == verbs::EventKind::ConnectRequest) return on_request(event);
  if (event.kind == verbs::EventKind::DeviceRemoved) {
    removed_ = true;
    return;
  }
  if (event.connection == nullptr) {
    logger_.info("device {}: {} {}", last_capabilities_.device, to_string(event.kind),
                 event.detail);
    return;
  }
  Session* session = find(event.connection);
  if (session == nullptr) return;  // of a connection that was given up
  switch (event.kind) {
    case verbs::EventKind::RouteResolved:
      return create_link(*session);
    case verbs::EventKind::Established:
      return on_established(*session, event.private_data);
    case verbs::EventKind::Rejected:
      return on_rejected(*session, event);
    default:
      return fail(*session, event.detail.empty()
                                ? to_string(event.kind)
                                : fmt::format("{}: {}", to_string(event.kind), event.detail));
  }
}

void Node::Impl::on_rejected(Session& session, const verbs::Event& event) {
  constexpr int kConsumerDefined =
      28;  // IB_CM_REJ_CONSUMER_DEFINED: the far end's own words follow
  if (event.status != kConsumerDefined) {
    return fail(session, fmt::format("refused: {}", event.detail));
  }
  const std::string why = describe_reject(event.private_data);
  const auto reason = parse_reject(event.private_data);
  // That attempts cross is in the nature of two nodes that both dial.
  if (reason == RejectReason::Crossed || reason == RejectReason::Stale) {
    return give_up(session, why);
  }
  fail(session, why);
}

void Node::Impl::dial(PeerIndex peer, unsigned index) {
  Session& session = peers_[peer].sessions[index];
  logger_.debug("{}: dialling, attempt {}", describe(session), session.machine.attempt());
  try {
    session.connection = fabric_->device->dial(options_.peers[peer].underlay, options_.path);
    session.dialled = true;
  } catch (const SystemError& error) {
    fail(session, error.what());
  }
}

void Node::Impl::create_link(Session& session) {
  Worker& worker = worker_of(index_of(session));
  try {
    session.connection->create_queue_pair(worker.queue_pair_config());
  } catch (const SystemError& error) {
    return fail(session, error.what());
  }
  session.link = LinkId(next_link_++);
  worker.submit(AttachLink{{*session.link, peer_index_of(session), session.connection->queue_pair(),
                            worker.send_limits(), session.gauges}});
}

void Node::Impl::on_attached(Session& session) {
  const auto hello = emit(hello_for(index_of(session), session));
  try {
    if (session.dialled) {
      session.connection->connect(hello);
    } else {
      session.connection->accept(hello);
    }
  } catch (const SystemError& error) {
    fail(session, error.what());
  }
}

void Node::Impl::drop(std::unique_ptr<verbs::Connection> incoming, RejectReason reason) {
  logger_.debug("request from {}: {}", incoming->remote().to_string(),
                describe_reject(emit_reject(reason)));
  try {
    incoming->reject(emit_reject(reason));
  } catch (const SystemError& error) {
    logger_.debug("refusing {}: {}", incoming->remote().to_string(), error.what());
  }
}

void Node::Impl::on_request(verbs::Event& event) {
  const auto hello = parse_hello(event.private_data);
  const auto peer = peer_at(event.incoming->remote(), hello ? hello->port : kDefaultPort);
  if (!peer) return drop(std::move(event.incoming), RejectReason::UnknownPeer);
  if (!hello) return drop(std::move(event.incoming), hello.error());
  if (hello->workers > peers_[*peer].sessions.size()) match_sessions(*peer, hello->workers);
  if (hello->session_index >= peers_[*peer].sessions.size()) {
    return drop(std::move(event.incoming), RejectReason::BadHello);
  }
  Session& session = peers_[*peer].sessions[hello->session_index];
  if (const auto refusal = session.machine.on_request(*hello, now_); refusal) {
    return drop(std::move(event.incoming), *refusal);
  }
  logger_.debug("{}: accepting attempt {} of the peer", describe(session), hello->attempt);
  accept(session, std::move(event.incoming), *hello);
}

void Node::Impl::accept(Session& session, std::unique_ptr<verbs::Connection> incoming,
                        const Hello& hello) {
  retire(session);
  session.connection = std::move(incoming);
  session.dialled = false;
  session.hello = hello;
  create_link(session);
}

void Node::Impl::on_established(Session& session, std::span<const std::byte> private_data) {
  if (!session.hello) {
    const auto hello = parse_hello(private_data);
    if (!hello) return fail(session, describe_reject(emit_reject(hello.error())));
    session.hello = *hello;
  }
  try {
    session.attributes = session.connection->attributes();
  } catch (const SystemError& error) {
    return fail(session, error.what());
  }
  const Hello hello = *session.hello;
  session.machine.on_established(hello, now_);
  session.logged_error.clear();
  peer_of(session).mtu = hello.mtu;
  peer_of(session).capabilities = hello.capabilities;
  worker_of(index_of(session)).submit(ActivateLink{*session.link, hello, session.dialled});
  logger_.info("{}: established, QP {:#x}, path MTU {}, peer's MTU {}", describe(session),
               session.attributes.number.value(), session.attributes.path_mtu.value(),
               hello.mtu.value());
  // Last: it may move the sessions.
  match_sessions(peer_index_of(session), hello.workers);
}

void Node::Impl::fail(Session& session, const std::string& why) {
  tell(session, why);
  give_up(session, why);
}

void Node::Impl::tell(Session& session, const std::string& why) {
  const bool stood = session.machine.state() == SessionState::Established;
  if (stood || session.logged_error != why) {
    logger_.warn("{}: {}: {}", describe(session), stood ? "lost" : "not connected", why);
    session.logged_error = why;
  }
}

void Node::Impl::give_up(Session& session, const std::string& why) {
  session.machine.on_failed(why, now_);
  retire(session);
}

void Node::Impl::retire(Session& session) {
  session.hello.reset();
  if (!session.connection) return;
  if (!session.link) {
    session.connection.reset();
    return;
  }
  const unsigned worker = index_of(session) % static_cast<unsigned>(fabric_->workers.size());
  // Tells the far end now; what the queue pair still has is flushed.
  session.connection->disconnect();
  fabric_->retired.emplace(*session.link, RetiredConnection{std::move(session.connection), worker});
  fabric_->workers[worker]->submit(DetachLink{*session.link});
  session.link.reset();
}

void Node::Impl::finish_retired(LinkId link) {
  const auto found = fabric_->retired.find(link);
  if (found == fabric_->retired.end()) return;
  const unsigned worker = found->second.worker;
  fabric_->retired.erase(found);
  fabric_->workers[worker]->submit(ForgetLink{link});
}

}  // namespace ipoverbs::transport
