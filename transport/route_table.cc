#include "transport/route_table.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::transport {

RouteTable::RouteTable(std::span<const PeerOptions> peers, std::span<const Prefix> own) {
  for (const Prefix& p : own) at(Prefix(p.address(), p.address().bits())) = Target::own();
  for (PeerIndex i = 0; i < peers.size(); ++i) {
    for (const Prefix& prefix : peers[i].prefixes) {
      Target& target = at(prefix);
      if (target.kind() == Target::Kind::Own) {
        throw UsageError(fmt::format("peer {} has {}, which is our own address", peers[i].name,
                                     prefix.to_string()));
      }
      if (target.kind() == Target::Kind::Peer) {
        throw UsageError(fmt::format("peers {} and {} both have {}; give it to one of them",
                                     peers[target.index()].name, peers[i].name,
                                     prefix.to_string()));
      }
      target = Target::peer(i);
    }
  }
}

Target& RouteTable::at(const Prefix& prefix) {
  std::uint32_t node = prefix.address().is_v4() ? kRootV4 : kRootV6;
  for (unsigned i = 0; i < prefix.length(); ++i) {
    const std::size_t side = prefix.address().bit(i) ? 1 : 0;
    if (nodes_[node].child[side] == 0) {
      nodes_.emplace_back();
      nodes_[node].child[side] = static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    node = nodes_[node].child[side];
  }
  return nodes_[node].target;
}

Target RouteTable::lookup(const IpAddress& address) const noexcept {
  std::uint32_t node = address.is_v4() ? kRootV4 : kRootV6;
  Target best = nodes_[node].target;
  for (unsigned i = 0; i < address.bits(); ++i) {
    node = nodes_[node].child[address.bit(i) ? 1 : 0];
    if (node == 0) break;
    if (nodes_[node].target.kind() != Target::Kind::None) best = nodes_[node].target;
  }
  return best;
}

}  // namespace ipoverbs::transport
