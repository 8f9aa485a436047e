// Round trips measured, and how long to wait for an answer (RFC 6298, without its one second).
//
// The far end may have kept the answer back for a known time: a sample that is longer by so much
// than the shortest is taken to include it (as RFC 9002, section 5.3).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ipoverbs::verbs::soft {

class RttEstimator {
 public:
  // A round trip of a packet that was sent once (Karn's rule); `ack_delay` is what the far end may
  // have kept its answer back.
  void sample(Duration round_trip, Duration ack_delay) {
    shortest_ = measured_ ? std::min(shortest_, round_trip) : round_trip;
    if (round_trip >= shortest_ + ack_delay) round_trip -= ack_delay;
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
  // srtt + 4 rttvar, and `margin` above srtt at least: round trips that hardly vary say nothing of
  // how late an answer may be.
  [[nodiscard]] Duration timeout(Duration margin) const {
    return smoothed_ + std::max(4 * variation_, margin);
  }

 private:
  Duration shortest_{};
  Duration smoothed_{};
  Duration variation_{};
  bool measured_ = false;
};

}  // namespace ipoverbs::verbs::soft
