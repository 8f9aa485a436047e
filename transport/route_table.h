// RouteTable: which peer owns an address, by longest prefix.
//
// Built once from the configuration and then read by all workers. A binary trie for each family: at
// most 32 or 128 steps, no allocation, as deep as the longest prefix that matches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ip.h"
#include "transport/options.h"

namespace ipoverbs::transport {

using PeerIndex = std::uint16_t;

// What an address belongs to.
class Target {
 public:
  enum class Kind : std::uint8_t { None, Own, Peer };
  constexpr Target() = default;
  [[nodiscard]] static constexpr Target own() { return {Kind::Own, 0}; }
  [[nodiscard]] static constexpr Target peer(PeerIndex index) { return {Kind::Peer, index}; }
  [[nodiscard]] constexpr Kind kind() const { return kind_; }
  // Of Kind::Peer only.
  [[nodiscard]] constexpr PeerIndex index() const { return index_; }
  friend constexpr bool operator==(Target, Target) = default;

 private:
  constexpr Target(Kind kind, PeerIndex index) : kind_(kind), index_(index) {}
  Kind kind_ = Kind::None;
  PeerIndex index_ = 0;
};

class RouteTable {
 public:
  // Peer i owns peers[i].prefixes. Of `own`, only the addresses themselves are ours: the rest of an
  // interface's prefix may be behind peers. Throws UsageError if two peers have the same prefix, or
  // a peer has one of our addresses as its whole prefix.
  RouteTable(std::span<const PeerOptions> peers, std::span<const Prefix> own);
  // Any thread; data path.
  [[nodiscard]] Target lookup(const IpAddress& address) const noexcept;

 private:
  struct Node {
    std::array<std::uint32_t, 2> child{};  // index into nodes_, 0: none
    Target target;
  };
  Target& at(const Prefix& prefix);
  static constexpr std::uint32_t kRootV4 = 0;
  static constexpr std::uint32_t kRootV6 = 1;
  std::vector<Node> nodes_{2};
};

}  // namespace ipoverbs::transport
