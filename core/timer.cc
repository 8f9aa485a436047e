#include "core/timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "core/error.h"

namespace ipoverbs {

namespace {

timespec to_timespec(Duration duration) {
  // A time of zero would mean no time at all.
  const Duration at = std::max(duration, Duration{1});
  return {.tv_sec = at / std::chrono::seconds(1),
          .tv_nsec = (at % std::chrono::seconds(1)).count()};
}

}  // namespace

Timer::Timer() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!fd_) throw SystemError(errno, "create a timer");
}

void Timer::set(std::optional<TimePoint> when) noexcept {
  itimerspec spec{};
  if (when) spec.it_value = to_timespec(when->time_since_epoch());
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Timer::set_every(Duration interval) noexcept {
  const itimerspec spec{.it_interval = to_timespec(interval), .it_value = to_timespec(interval)};
  ::timerfd_settime(fd_.get(), 0, &spec, nullptr);
}

void Timer::consume() noexcept {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &expirations, sizeof expirations);
}

}  // namespace ipoverbs
