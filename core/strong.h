// Strong: a number that is not interchangeable with another number of the same width.
//
// A QP number, a PSN, a memory key and a count of credits are all 32-bit integers to the machine
// and must never be mixed up by us. Strong<Tag, T> compares and hashes, and does no arithmetic:
// what arithmetic makes sense is defined beside the type that needs it, by name.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>

namespace ipoverbs {

template <class Tag, std::integral T>
class Strong {
 public:
  using Value = T;
  constexpr Strong() = default;
  constexpr explicit Strong(T value) : value_(value) {}
  [[nodiscard]] constexpr T value() const { return value_; }
  friend constexpr auto operator<=>(Strong, Strong) = default;

 private:
  T value_{};
};

}  // namespace ipoverbs

template <class Tag, class T>
struct std::hash<ipoverbs::Strong<Tag, T>> {
  std::size_t operator()(ipoverbs::Strong<Tag, T> s) const noexcept {
    return std::hash<T>{}(s.value());
  }
};
