// Gauge: a number that one thread writes and any thread reads, at any time: relaxed loads and
// stores serve.
#pragma once

#include <atomic>
#include <cstdint>

namespace ipoverbs {

class Gauge {
 public:
  // The writer's.
  void add(std::uint64_t n = 1) noexcept { set(value() + n); }
  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace ipoverbs
