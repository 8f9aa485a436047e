// Bounded: a vector that never grows by itself, for the data path.
//
// Room is made with reserve(), which may allocate and throw and is for set-up; append() only uses
// it.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace ipoverbs {

template <class T>
class Bounded {
 public:
  Bounded() = default;
  explicit Bounded(std::size_t capacity) { reserve(capacity); }
  // Room for `capacity` elements in all. Set-up.
  void reserve(std::size_t capacity) { elements_.reserve(capacity); }

  // There is room: size() < capacity(), a programmer's error otherwise.
  void append(T element) noexcept {
    assert(elements_.size() < elements_.capacity());
    elements_.push_back(std::move(element));
  }
  // Not on an empty one.
  [[nodiscard]] T take_last() noexcept {
    T last = std::move(elements_.back());
    elements_.pop_back();
    return last;
  }
  void clear() noexcept { elements_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return elements_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return elements_.capacity(); }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return elements_[i]; }
  [[nodiscard]] std::span<const T> elements() const noexcept { return elements_; }
  [[nodiscard]] std::span<T> elements() noexcept { return elements_; }

 private:
  std::vector<T> elements_;
};

}  // namespace ipoverbs
