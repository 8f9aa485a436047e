#include "transport/route_table.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "core/byte_order.h"
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

RouteTable::Bits::Bits(const IpAddress& address) noexcept {
  std::array<std::byte, 16> bytes{};
  std::ranges::copy(address.bytes(), bytes.begin());
  high = load<Be64>(bytes).value();
  low = load<Be64>(std::span(bytes).subspan(8)).value();
}

unsigned RouteTable::Bits::common(const Bits& other) const noexcept {
  const std::uint64_t difference = high ^ other.high;
  return static_cast<unsigned>(difference != 0 ? std::countl_zero(difference)
                                               : 64 + std::countl_zero(low ^ other.low));
}

std::uint32_t RouteTable::add(const Bits& bits, unsigned length) {
  nodes_.push_back({.bits = bits, .length = length, .child = {}, .target = {}});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t RouteTable::split(std::uint32_t parent, std::size_t side, unsigned length) {
  const std::uint32_t below = nodes_[parent].child[side];
  const Bits bits = nodes_[below].bits;
  const std::uint32_t between = add(bits, length);
  nodes_[between].child[bits[length]] = below;
  nodes_[parent].child[side] = between;
  return between;
}

Target& RouteTable::at(const Prefix& prefix) {
  const Bits bits(prefix.address());
  std::uint32_t node = prefix.address().is_v4() ? kRootV4 : kRootV6;
  while (nodes_[node].length < prefix.length()) {
    const std::size_t side = bits[nodes_[node].length];
    const std::uint32_t child = nodes_[node].child[side];
    if (child == 0) {
      const std::uint32_t leaf = add(bits, prefix.length());
      nodes_[node].child[side] = leaf;
      return nodes_[leaf].target;
    }
    const unsigned same = std::min(bits.common(nodes_[child].bits), prefix.length());
    node = same < nodes_[child].length ? split(node, side, same) : child;
  }
  return nodes_[node].target;
}

Target RouteTable::lookup(const IpAddress& address) const noexcept {
  const Bits bits(address);
  const Node* node = &nodes_[address.is_v4() ? kRootV4 : kRootV6];
  Target best = node->target;
  while (node->length < address.bits()) {
    const std::uint32_t child = node->child[bits[node->length]];
    if (child == 0) break;
    node = &nodes_[child];
    if (bits.common(node->bits) < node->length) break;
    if (node->target.kind() != Target::Kind::None) best = node->target;
  }
  return best;
}

}  // namespace ipoverbs::transport
