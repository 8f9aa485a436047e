// How many bytes a queue pair may have under way.
//
// The upper limit comes from outside: what the receiver's socket buffer holds. Below it the window
// is polite on a shared network, as TCP's is (RFC 5681): it starts small and doubles each round
// trip up to a threshold, then grows by one packet a round trip, halves when packets were lost or
// a congestion notification (CNP) came, at most once for all that was then under way, and falls
// back to its start when nothing came back at all.
//
// Bytes are what a packet costs the receiver's buffer: payload and kPacketCost for its headers and
// the kernel's bookkeeping (struct sk_buff and skb_shared_info, both charged to SO_RCVBUF).
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"

namespace ipoverbs::verbs::soft {

class SendWindow {
 public:
  static constexpr std::uint64_t kPacketCost = 768;
  static constexpr std::uint64_t kInitial = 65536;  // or 16 packets, whichever is more

  SendWindow() = default;
  // `limit` in bytes; `mtu` is the path MTU. At least two packets may always be under way.
  SendWindow(std::uint64_t limit, std::uint32_t mtu)
      : packet_(mtu + kPacketCost),
        limit_(std::max(limit, 2 * packet_)),
        threshold_(limit_),
        window_(initial()) {}

  [[nodiscard]] std::uint64_t bytes() const { return window_; }

  // `bytes` were acknowledged while `under_way` bytes, they included, were under way: a window that
  // is not made use of doesn't grow.
  void on_acknowledged(std::uint64_t bytes, std::uint64_t under_way) {
    if (2 * under_way < window_) return;
    const bool doubling = window_ < threshold_;
    window_ += doubling ? bytes : std::max<std::uint64_t>(packet_ * bytes / window_, 1);
    window_ = std::min(window_, doubling ? std::max(threshold_, packet_) : limit_);
  }
  // The caller sees to it that one loss episode is told once.
  void on_loss() {
    threshold_ = std::max(window_ / 2, 2 * packet_);
    window_ = threshold_;
  }
  void on_timeout() {
    threshold_ = std::max(window_ / 2, 2 * packet_);
    window_ = std::min(initial(), threshold_);
  }

 private:
  [[nodiscard]] std::uint64_t initial() const {
    return std::min(limit_, std::max(kInitial, 16 * packet_));
  }
  std::uint64_t packet_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t threshold_ = 0;
  std::uint64_t window_ = 0;
};

}  // namespace ipoverbs::verbs::soft
