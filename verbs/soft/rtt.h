// Round trips measured, and how long to wait for an answer (RFC 6298, without its one second).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ipoverbs::verbs::soft {

class RttEstimator {
 public:
  // A round trip of a packet that was sent once (Karn's rule).
  void sample(Duration round_trip) {
    if (!measured_) {
      smoothed_ = round_trip;
      variation_ = round_trip / 2;
      measured_ = true;
      return;
    }
    const Duration off = round_trip > smoothed_ ? round_trip - smoothed_ : smoothed_ - round_trip;
    variation_ = (3 * variation_ + off) / 4;
    smoothed_ = (7 * smoothed_ + round_trip) / 8;
  }

  [[nodiscard]] bool measured() const { return measured_; }
  [[nodiscard]] Duration smoothed() const { return smoothed_; }
  // srtt + 4 rttvar.
  [[nodiscard]] Duration timeout() const { return smoothed_ + 4 * variation_; }

 private:
  Duration smoothed_{};
  Duration variation_{};
  bool measured_ = false;
};

}  // namespace ipoverbs::verbs::soft
