// Packet sequence numbers: 24 bits, circular.
//
// A PSN has no order of its own: "before" makes sense only for two numbers less than 2^23 apart,
// which is what the reliable connection keeps (InfiniBand Architecture vol. 1, 9.7.2). So there is
// no < here, and a Psn does not fit into a sorted container.
#pragma once

#include <cstdint>

namespace ipoverbs::verbs::soft {

class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xffffff;
  constexpr Psn() = default;
  // The low 24 bits of `value`.
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}
  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  // `packets` after this one; may be more than 2^24, it wraps.
  [[nodiscard]] constexpr Psn plus(std::uint32_t packets) const { return Psn(value_ + packets); }
  [[nodiscard]] constexpr Psn minus(std::uint32_t packets) const { return Psn(value_ - packets); }
  [[nodiscard]] constexpr Psn next() const { return plus(1); }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

// How many packets `to` lies after `from`: -2^23 .. 2^23 - 1.
[[nodiscard]] constexpr std::int32_t distance(Psn from, Psn to) {
  return static_cast<std::int32_t>((to.value() - from.value()) << 8U) >> 8;
}

// Whether `a` comes before `b`; false when they are equal.
[[nodiscard]] constexpr bool before(Psn a, Psn b) { return distance(a, b) > 0; }

}  // namespace ipoverbs::verbs::soft
