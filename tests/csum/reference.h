// The Internet checksum as RFC 1071 words it, a byte at a time: slow, and plain enough to believe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/byte_order.h"

namespace ipoverbs::csum::reference {

// a + b with an end-around carry.
inline std::uint16_t add(std::uint16_t a, std::uint16_t b) {
  const std::uint32_t sum = std::uint32_t{a} + b;
  return static_cast<std::uint16_t>((sum & 0xffff) + (sum >> 16));
}

// Adds one byte after another; sum() is the sum of those so far.
class Summer {
 public:
  explicit Summer(std::uint16_t initial = 0) : sum_(initial) {}
  void add_byte(std::byte b) {
    const auto value = std::to_integer<std::uint16_t>(b);
    sum_ = add(sum_, even_ ? static_cast<std::uint16_t>(value << 8) : value);
    even_ = !even_;
  }
  [[nodiscard]] Be16 sum() const { return Be16(sum_); }

 private:
  std::uint16_t sum_;
  bool even_ = true;  // whether the next byte is the first of its word
};

inline Be16 sum(std::span<const std::byte> bytes, std::uint16_t initial = 0) {
  Summer summer(initial);
  for (const std::byte b : bytes) summer.add_byte(b);
  return summer.sum();
}

}  // namespace ipoverbs::csum::reference
