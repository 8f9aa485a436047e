// RouteTable: which peer owns an address, by longest prefix.
//
// Theory of operation. Built once from the configuration and then read by all workers, without
// allocation. A path-compressed binary trie (PATRICIA; Morrison, J. ACM 15:4, 1968) for each
// family: a node stands for its first `length` bits, and its children are told apart by the next
// one, so that bits in which all prefixes below agree cost no step of their own. Every node but the
// root has a target or two children: n prefixes take 2 n nodes at most, and a look-up among peers
// that are numbered in sequence about log2(n) steps, whatever the family.
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
  // An address's bits, left-aligned: bit 0 is the most significant.
  struct Bits {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    explicit Bits(const IpAddress& address) noexcept;
    Bits() = default;
    [[nodiscard]] std::size_t operator[](unsigned i) const noexcept {
      return (i < 64 ? high >> (63 - i) : low >> (127 - i)) & 1U;
    }
    // How many bits from the first on are the same.
    [[nodiscard]] unsigned common(const Bits& other) const noexcept;
  };
  struct Node {
    Bits bits;
    unsigned length = 0;                   // of bits that count
    std::array<std::uint32_t, 2> child{};  // index into nodes_, 0: none
    Target target;
  };
  // The target of the prefix's node, which is made if there is none.
  Target& at(const Prefix& prefix);
  // A new node's index.
  std::uint32_t add(const Bits& bits, unsigned length);
  // Puts a node of `length` bits between `node` and the parent that has it as child `side`.
  std::uint32_t split(std::uint32_t parent, std::size_t side, unsigned length);
  static constexpr std::uint32_t kRootV4 = 0;
  static constexpr std::uint32_t kRootV6 = 1;
  std::vector<Node> nodes_{2};
};

}  // namespace ipoverbs::transport
