// Ring: packets on their way from one process to another one, in memory that both share.
//
// Theory of operation. One producer, one consumer. Of kSlots slots, those from tail up to head,
// modulo kSlots, hold a packet each; head is the producer's to advance, tail the consumer's, each
// on a cache line of its own. Both count on past kSlots and wrap at 2^32. Each end keeps its own
// index and the last that it saw of the other's in private memory, and looks at the shared one only
// where those would have it wait.
//
// A slot takes the largest record of a TUN. Slots begin at changing offsets modulo 4 KiB, so that
// not every copy has source and destination at the same one, which costs a CPU dearly (4K
// aliasing).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tun/virtio_net.h"

namespace ipoverbs::bounds {

inline constexpr std::uint32_t kSlots = 64;
inline constexpr std::size_t kCacheLine = 64;
// 64 KiB and 37 cache lines: 37 is odd, so that 64 slots have 64 different offsets.
inline constexpr std::size_t kSlotBytes = 65536 + 37 * kCacheLine;
static_assert(kSlotBytes >= tun::kMaxRecord);

struct Ring {
  alignas(kCacheLine) std::atomic<std::uint32_t> head{0};
  alignas(kCacheLine) std::atomic<std::uint32_t> tail{0};
  alignas(kCacheLine) std::array<std::uint32_t, kSlots> sizes{};
  alignas(kCacheLine) std::array<std::array<std::byte, kSlotBytes>, kSlots> slots;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

class Producer {
 public:
  explicit Producer(Ring& ring) : ring_(ring) {}
  // Whether there is no slot to fill.
  [[nodiscard]] bool full() noexcept {
    if (head_ - tail_seen_ < kSlots) return false;
    tail_seen_ = ring_.tail.load(std::memory_order_acquire);
    return head_ - tail_seen_ >= kSlots;
  }
  // The next slot, where the ring is not full.
  [[nodiscard]] std::span<std::byte> slot() noexcept { return ring_.slots[head_ % kSlots]; }
  // Hands over the first `size` bytes of it.
  void publish(std::size_t size) noexcept {
    ring_.sizes[head_ % kSlots] = static_cast<std::uint32_t>(size);
    ring_.head.store(++head_, std::memory_order_release);
  }

 private:
  Ring& ring_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_seen_ = 0;
};

class Consumer {
 public:
  explicit Consumer(Ring& ring) : ring_(ring) {}
  [[nodiscard]] bool empty() noexcept {
    if (tail_ != head_seen_) return false;
    head_seen_ = ring_.head.load(std::memory_order_acquire);
    return tail_ == head_seen_;
  }
  // The oldest packet, where the ring is not empty.
  [[nodiscard]] std::span<const std::byte> front() const noexcept {
    return std::span(ring_.slots[tail_ % kSlots]).first(ring_.sizes[tail_ % kSlots]);
  }
  // Gives its slot back.
  void release() noexcept { ring_.tail.store(++tail_, std::memory_order_release); }

 private:
  Ring& ring_;
  std::uint32_t tail_ = 0;
  std::uint32_t head_seen_ = 0;
};

}  // namespace ipoverbs::bounds
