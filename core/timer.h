// Timer: timerfd(2) on the steady clock.
#pragma once

#include <optional>

#include "core/clock.h"
#include "core/fd.h"

namespace ipoverbs {

// Its descriptor is readable from when the time has come until consume(). One thread at a time.
class Timer {
 public:
  // Throws SystemError.
  Timer();
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Replaces what was set before. nullopt: not at all.
  void set(std::optional<TimePoint> when) noexcept;
  // First after `interval`, which is positive, and then again and again.
  void set_every(Duration interval) noexcept;
  void consume() noexcept;

 private:
  Fd fd_;
};

}  // namespace ipoverbs
