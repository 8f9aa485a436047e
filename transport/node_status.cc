#include <algorithm>
#include <limits>

#include "transport/node_impl.h"

namespace ipoverbs::transport {

namespace {
bool established(const Session& session) {
  return session.machine.state() == SessionState::Established;
}
}  // namespace

std::uint32_t Node::Impl::peer_capabilities() const {
  std::uint32_t common = std::numeric_limits<std::uint32_t>::max();
  for (const Peer& peer : peers_) {
    if (std::ranges::any_of(peer.sessions, established)) common &= peer.capabilities;
  }
  return common;
}

SessionStatus Node::Impl::session_status(const Session& session, unsigned index,
                                         TimePoint now) const {
  SessionStatus s;
  s.index = index;
  s.worker = index % static_cast<unsigned>(tun_queues_.size());
  s.state = to_string(session.machine.state());
  s.last_error = session.machine.last_error();
  s.established_count = session.machine.established_count();
  s.since = now - session.machine.since();
  if (!established(session)) return s;
  s.queue_pair = session.attributes.number;
  s.path_mtu = session.attributes.path_mtu;
  s.send_credits = static_cast<std::uint32_t>(session.gauges->send_credits.value());
  s.receive_share = static_cast<std::uint32_t>(session.gauges->receive_window.value());
  s.queued_packets = static_cast<std::uint32_t>(session.gauges->queued_packets.value());
  return s;
}

PeerStatus Node::Impl::peer_status(PeerIndex index, TimePoint now) const {
  const Peer& peer = peers_[index];
  PeerStatus s;
  s.name = options_.peers[index].name;
  s.underlay = options_.peers[index].underlay.endpoint;
  s.prefixes = options_.peers[index].prefixes;
  const bool any_up = std::ranges::any_of(peer.sessions, established);
  const bool trying = std::ranges::any_of(peer.sessions, [](const Session& session) {
    return session.machine.state() != SessionState::Backoff;
  });
  s.state = any_up ? "connected" : trying ? "connecting" : "down";
  if (peer.mtu.value() != 0) s.mtu = std::min(peer.mtu, options_.mtu);
  PeerTotals totals = past_totals_[index];
  if (fabric_) {
    for (const auto& worker : fabric_->workers) {
      const PeerGauges& g = worker->peer_gauges(index);
      totals.tx_packets += g.tx_packets.value();
      totals.tx_bytes += g.tx_bytes.value();
      totals.rx_packets += g.rx_packets.value();
      totals.rx_bytes += g.rx_bytes.value();
    }
  }
  s.tx_packets = totals.tx_packets;
  s.tx_bytes = totals.tx_bytes;
  s.rx_packets = totals.rx_packets;
  s.rx_bytes = totals.rx_bytes;
  for (unsigned i = 0; i < peer.sessions.size(); ++i) {
    s.sessions.push_back(session_status(peer.sessions[i], i, now));
  }
  return s;
}

Status Node::Impl::status(TimePoint now) const {
  Status s;
  s.device_state = device_state_;
  s.device = last_capabilities_;
  s.node_id = id_.value();
  s.withdrawn = withdrawn_;
  s.mtu = options_.mtu;
  s.workers = static_cast<unsigned>(tun_queues_.size());
  for (PeerIndex i = 0; i < peers_.size(); ++i) s.peers.push_back(peer_status(i, now));
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    std::uint64_t sum = past_counters_[i];
    if (fabric_) {
      for (const auto& worker : fabric_->workers) sum += worker->counters().value(counter);
    }
    s.counters.push_back({to_string(counter), sum});
  }
  s.doorbells = past_doorbells_;
  if (fabric_) {
    for (const auto& worker : fabric_->workers) s.doorbells.add(worker->doorbells());
  }
  if (fabric_) s.device_counters = fabric_->device->counters();
  return s;
}

}  // namespace ipoverbs::transport
