// Which IPv4 identifications a sender uses, so that one that was solved for (verbs/soft/icrc.h) can
// be doubted.
//
// A solved identification leaves few bits of the ICRC as a check: one in 2^15 damaged packets would
// pass, some single flipped bits among them. But senders are regular. Ours send 0, 1, 2, ... within
// one UDP_SEGMENT send, at most kSegments of them; the kernel's rdma_rxe, and whatever else takes
// its identifications from net/ipv4/route.c, counts up, by a little more than one a packet and by
// at most a random part of the clock ticks that it was silent. Whatever else comes is dropped once
// and believed when the next one continues it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ipoverbs::verbs::soft {

class IpIdTracker {
 public:
  static constexpr std::uint16_t kSegments = 128;  // of one UDP_SEGMENT send (UDP_MAX_SEGMENTS)

  // The likeliest identification of the datagram that is the `segment`-th of those received as one.
  [[nodiscard]] std::uint16_t guess(std::uint16_t segment) const {
    return counts_ ? static_cast<std::uint16_t>(last_ + 1) : segment;
  }

  // Whether a datagram with identification `id`, its ICRC being right for that, is to be believed.
  [[nodiscard]] bool accept(std::uint16_t id, TimePoint now) {
    const bool as_before = !started_ || (counts_ ? follows(last_, id, now) : id < kSegments);
    if (!as_before && !(doubting_ && follows(doubted_, id, now))) {
      doubted_ = id;
      doubting_ = true;
      return false;
    }
    if (!started_) counts_ = id >= kSegments;
    if (!as_before) counts_ = true;
    started_ = true;
    doubting_ = false;
    last_ = id;
    heard_ = now;
    return true;
  }

 private:
  // Packets that were lost or went elsewhere, and the kernel's random step for each tick of at most
  // 1000 a second; a little backwards, for reordering and copies.
  [[nodiscard]] bool follows(std::uint16_t before, std::uint16_t id, TimePoint now) const {
    constexpr std::int64_t kAhead = 256;
    constexpr int kBehind = 64;
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - heard_).count();
    const auto ahead = static_cast<std::uint16_t>(id - before);
    return ahead <= std::min<std::int64_t>(kAhead + silent, 0x7fff) || ahead >= 0x10000 - kBehind;
  }

  std::uint16_t last_ = 0;     // the last one believed
  std::uint16_t doubted_ = 0;  // the one dropped since
  TimePoint heard_;            // when last_ came
  bool started_ = false;
  bool counts_ = false;  // from packet to packet; otherwise from 0 within each send
  bool doubting_ = false;
};

}  // namespace ipoverbs::verbs::soft
