// FrameQueue: packets that wait for a peer's credit or for slabs, copied out of the way.
//
// A session that has no credit, or pins its share of the slabs (send_queue.h), must not pin more of
// those that other sessions fill. What waits for it is copied, in order, into one slab of its own:
// 256 KiB at most. A queue that ran empty gives its slab back. The last free slab no queue takes:
// the TUN is read into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "csum/packet.h"
#include "transport/buffers.h"
#include "transport/copy.h"

namespace ipoverbs::transport {

class FrameQueue {
 public:
  explicit FrameQueue(SlabPool& slabs) noexcept : slabs_(slabs) {}
  ~FrameQueue() { clear(); }
  FrameQueue(const FrameQueue&) = delete;
  FrameQueue& operator=(const FrameQueue&) = delete;

  enum class Push : std::uint8_t {
    Queued,
    Full,         // or one slab is free at most
    BadChecksum,  // `checksum` does not fit the packet
  };
  // Copies a whole frame of a packet; with `checksum`, completes that of the packet on the copy.
  // Data path.
  [[nodiscard]] Push push(std::span<const std::byte> frame,
                          const std::optional<csum::ChecksumPlace>& checksum,
                          Summing summing) noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  // The oldest frame, in slab(); not on an empty queue.
  [[nodiscard]] std::span<std::byte> front() const noexcept;
  [[nodiscard]] Slab& slab() const noexcept { return *slab_; }
  // Its bytes stay as long as somebody holds a reference to the slab.
  void pop() noexcept;
  void clear() noexcept;

 private:
  SlabPool& slabs_;
  Slab* slab_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace ipoverbs::transport
