// What the settings of `ipoverbs up` mean together.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "daemon/up_options.h"

namespace ipoverbs::daemon {

namespace {

// `prefix` (without host bits) with `host` in its last byte.
IpAddress with_host(const Prefix& prefix, unsigned host) {
  std::vector<std::byte> bytes(prefix.address().bytes().begin(), prefix.address().bytes().end());
  bytes.back() |= static_cast<std::byte>(host);
  return IpAddress::from_bytes(bytes);
}

// The all-zeros address of a subnet is nobody's, and in IPv4 neither is the all-ones address,
// unless the subnet is so small that both are needed (RFC 3021, RFC 6164).
bool is_host(const MapText& map, unsigned host, unsigned bits) {
  if (bits < 2) return true;
  const bool any_v4 = map.overlay.address().is_v4() || map.underlay.address().is_v4();
  return host != 0 && !(any_v4 && host == (1U << bits) - 1);
}

void expand_map(UpDraft& draft, const MapDraft& from) {
  const MapText& map = from.map;
  const IpAddress& own = draft.command.options.device.underlay.address;
  const unsigned bits = map.overlay.address().bits() - map.overlay.length();
  for (unsigned host = 0; host < 1U << bits; ++host) {
    const IpAddress underlay = with_host(map.underlay, host);
    if (!is_host(map, host, bits) || underlay == own) continue;
    const IpAddress overlay = with_host(map.overlay, host);
    draft.peers.push_back({{underlay.to_string(),
                            {.endpoint = {underlay, 0, 0}, .by_gid = false},
                            {Prefix(overlay, overlay.bits())}},
                           from.origin});
  }
}

void check_underlay(const UpDraft& draft) {
  if (draft.origins.contains("underlay")) return;
  throw UsageError(
      "--underlay is missing; give this host's address on the RDMA network, as in "
      "--underlay 192.0.2.1 ('ipoverbs devices' lists them)");
}

// The peer's own address: reachable from ours, no one else's, and not ours.
void check_peer_underlays(const UpDraft& draft) {
  const UpOptions& options = draft.command.options;
  const auto kind = [](const IpAddress& address, bool by_gid) {
    return by_gid ? "a GID" : address.is_v4() ? "IPv4" : "IPv6";
  };
  const std::string own_kind = kind(options.device.underlay.address, options.device.by_gid);
  std::map<Endpoint, const PeerDraft*> seen;
  for (const PeerDraft& draft_peer : draft.peers) {
    const auto& [peer, origin] = draft_peer;
    const Endpoint& endpoint = peer.underlay.endpoint;
    const std::string peer_kind = kind(endpoint.address, peer.underlay.by_gid);
    if (peer_kind != own_kind) {
      refuse(origin, fmt::format("the underlay of peer '{}' is {}, ours ({}) is {}; both must be "
                                 "of one kind",
                                 peer.name, peer_kind, draft.origin("underlay"), own_kind));
    }
    if (endpoint.address == options.device.underlay.address &&
        endpoint.scope == options.device.underlay.scope &&
        endpoint.port == options.transport.port) {
      refuse(origin, fmt::format("peer '{}' has our own underlay address and port", peer.name));
    }
    const auto [first, inserted] = seen.emplace(endpoint, &draft_peer);
    if (inserted) continue;
    refuse(origin, fmt::format("peer '{}' has the underlay address of peer '{}' ({}); give all "
                               "prefixes in one line, separated by commas",
                               peer.name, first->second->peer.name, first->second->origin));
  }
}

void check_peer_names(const UpDraft& draft) {
  std::map<std::string, const PeerDraft*> seen;
  for (const PeerDraft& peer : draft.peers) {
    const auto [first, inserted] = seen.emplace(peer.peer.name, &peer);
    if (inserted) continue;
    refuse(peer.origin, fmt::format("name '{}' is already that of another peer ({}); give each "
                                    "peer a name of its own",
                                    peer.peer.name, first->second->origin));
  }
}

void check_addresses(const UpDraft& draft) {
  std::map<IpAddress, const AddressDraft*> seen;
  for (const AddressDraft& own : draft.addresses) {
    const auto [first, inserted] = seen.emplace(own.address.address(), &own);
    if (inserted) continue;
    refuse(own.origin, fmt::format("address {} is given twice (first at {})",
                                   own.address.address().to_string(), first->second->origin));
  }
}

// Which peer owns each prefix of the overlay.
using Owners = std::map<Prefix, const PeerDraft*>;

Owners check_peer_prefixes(const UpDraft& draft) {
  Owners owners;
  for (const PeerDraft& peer : draft.peers) {
    for (const Prefix& prefix : peer.peer.prefixes) {
      const auto [first, inserted] = owners.emplace(prefix, &peer);
      if (inserted) continue;
      const PeerDraft& other = *first->second;
      if (&other == &peer) {
        refuse(peer.origin,
               fmt::format("peer '{}' has prefix {} twice", peer.peer.name, prefix.to_string()));
      }
      refuse(peer.origin,
             fmt::format("prefix {} of peer '{}' is already that of peer '{}' ({}); a prefix "
                         "belongs to one peer",
                         prefix.to_string(), peer.peer.name, other.peer.name, other.origin));
    }
  }
  return owners;
}

void check_own_against_peers(const UpDraft& draft, const Owners& owners) {
  for (const AddressDraft& own : draft.addresses) {
    const IpAddress& address = own.address.address();
    const auto owner = owners.find(Prefix(address, address.bits()));
    if (owner == owners.end()) continue;
    refuse(owner->second->origin,
           fmt::format("prefix {} of peer '{}' is our own address ({})", owner->first.to_string(),
                       owner->second->peer.name, own.origin));
  }
}

// Overlay prefixes, and for each what a message calls it.
using Overlay = std::map<Prefix, std::string>;

Overlay collect_overlay(const UpDraft& draft, const Owners& owners) {
  Overlay overlay;
  for (const AddressDraft& own : draft.addresses) {
    overlay.emplace(own.address.network(),
                    fmt::format("our address {} ({})", own.address.to_string(), own.origin));
  }
  for (const auto& [prefix, peer] : owners) {
    overlay.emplace(prefix, fmt::format("prefix {} of peer '{}' ({})", prefix.to_string(),
                                        peer->peer.name, peer->origin));
  }
  return overlay;
}

// At most 129 look-ups, however many prefixes there are.
void check_outside(const Overlay& overlay, const IpAddress& underlay, const std::string& origin) {
  for (unsigned length = 0; length <= underlay.bits(); ++length) {
    const auto covering = overlay.find(Prefix(underlay, length).network());
    if (covering == overlay.end()) continue;
    refuse(origin, fmt::format("underlay address {} lies within the overlay: {}; underlay and "
                               "overlay must not overlap",
                               underlay.to_string(), covering->second));
  }
}

void check_overlap(const UpDraft& draft, const Overlay& overlay) {
  const verbs::DeviceRequest& device = draft.command.options.device;
  if (!device.by_gid) check_outside(overlay, device.underlay.address, draft.origin("underlay"));
  for (const PeerDraft& peer : draft.peers) {
    const verbs::RemoteAddress& underlay = peer.peer.underlay;
    if (!underlay.by_gid) check_outside(overlay, underlay.endpoint.address, peer.origin);
  }
}

void check_mtu(const UpDraft& draft, const Overlay& overlay) {
  const IpMtu mtu = draft.command.options.tun.mtu;
  if (mtu >= tun::kMinIpv6Mtu) return;
  for (const auto& [prefix, what] : overlay) {
    if (prefix.address().is_v4()) continue;
    refuse(draft.origin("mtu"), fmt::format("{} is too small for IPv6, which {} needs; at least {}",
                                            mtu.value(), what, tun::kMinIpv6Mtu.value()));
  }
}

void check_numbers(const UpDraft& draft) {
  const transport::Options& options = draft.command.options.transport;
  const Duration least = 2 * transport::kShortestTick;
  if (options.dead_time < options.keepalive + least) {
    refuse(draft.origin(draft.origins.contains("dead-time") ? "dead-time" : "keepalive"),
           fmt::format("dead-time {} is not {} longer than keepalive {}",
                       format_duration(options.dead_time), format_duration(least),
                       format_duration(options.keepalive)));
  }
  if (options.signal_interval > options.send_depth / 2) {
    refuse(
        draft.origin(draft.origins.contains("signal-interval") ? "signal-interval" : "send-depth"),
        fmt::format("signal-interval {} is more than half of send-depth {}",
                    options.signal_interval, options.send_depth));
  }
}

void check_link_options(const UpDraft& draft) {
  const UpOptions& options = draft.command.options;
  if (options.transport.path.pkey && (*options.transport.path.pkey & 0x7fff) == 0) {
    refuse(draft.origin("pkey"), "the low 15 bits of a partition key are not 0, as in 0x8001");
  }
}

// What lies within the prefix of an own address is routed to the interface already.
std::vector<Prefix> routes_to(const Owners& owners, const std::vector<AddressDraft>& addresses) {
  std::vector<Prefix> routes;
  for (const auto& [prefix, peer] : owners) {
    const bool connected = std::ranges::any_of(addresses, [&](const AddressDraft& own) {
      return own.address.length() <= prefix.length() && own.address.contains(prefix.address());
    });
    if (!connected) routes.push_back(prefix);
  }
  return routes;
}

void fill_in(UpDraft& draft, const Owners& owners) {
  UpOptions& options = draft.command.options;
  for (const AddressDraft& own : draft.addresses) options.tun.addresses.push_back(own.address);
  options.transport.own = options.tun.addresses;
  if (draft.routes) options.tun.routes = routes_to(owners, draft.addresses);
  for (PeerDraft& peer : draft.peers) options.transport.peers.push_back(std::move(peer.peer));
  if (options.control.empty()) options.control = default_control_path(options.tun.name);
  if (options.transport.peers.empty()) {
    draft.command.warnings.emplace_back("no peer is configured; nothing will be carried");
  }
}

}  // namespace

void complete_draft(UpDraft& draft) {
  check_underlay(draft);
  for (const MapDraft& map : draft.maps) {
    if (draft.command.options.device.by_gid) {
      refuse(map.origin, "a map needs IP addresses in the underlay, which is given as a GID");
    }
    if (draft.peers.size() <= kMaxPeers) expand_map(draft, map);
  }
  if (draft.peers.size() > kMaxPeers) {
    refuse(
        draft.peers[kMaxPeers].origin,
        fmt::format("these are more than {} peers, which is the most that is allowed", kMaxPeers));
  }
  for (PeerDraft& peer : draft.peers) {
    std::uint16_t& port = peer.peer.underlay.endpoint.port;
    if (port == 0) port = draft.command.options.transport.port;
  }
  check_peer_names(draft);
  check_peer_underlays(draft);
  check_addresses(draft);
  const Owners owners = check_peer_prefixes(draft);
  check_own_against_peers(draft, owners);
  const Overlay overlay = collect_overlay(draft, owners);
  check_overlap(draft, overlay);
  check_mtu(draft, overlay);
  check_numbers(draft);
  check_link_options(draft);
  fill_in(draft, owners);
}

}  // namespace ipoverbs::daemon
