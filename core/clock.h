// Time as an argument.
//
// State machines and data-path code take `now` as a parameter; only event loops read the clock,
// once a turn, through monotonic_now(). Tests pass whatever time they like.
#pragma once

#include <chrono>

namespace ipoverbs {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// CLOCK_MONOTONIC. Any thread.
[[nodiscard]] inline TimePoint monotonic_now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace ipoverbs
