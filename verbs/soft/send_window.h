// How many bytes a queue pair may have under way.
//
// The upper limit comes from outside: what the receiver's socket buffer holds. Below it the window
// is polite on a shared network, by the rules of TCP without its later refinements (RFC 5681; ECN:
// RFC 3168, section 6.1.2), so that it shares evenly with TCP that meets the same queue:
//
//   start             kInitial, or 16 packets
//   round trip        doubles up to the threshold (slow start), beyond it grows by one packet
//   loss, or a        halves, and the threshold with it; at most once for all that was then under
//   notification      way. A notification (CNP) says that a queue has marked a packet, and counts
//                     like a loss, but nothing needs to be sent again
//   nothing comes     threshold to half, window to the start
//   floor             two packets; one may always be under way, so that no message waits for ever
//   ceiling           the limit; a window of which less than half is used doesn't grow
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
