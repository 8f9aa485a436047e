// Registered memory of a worker: slabs that packets are sent from, buffers that messages are
// received into.
//
// A slab holds many frames, laid end to end as the TUN gave them. Whoever still needs its bytes
// holds a reference: the worker while it fills it, every posted message that gathers from it, a
// session's queue. A slab without references goes to the top of the free list and is the next one
// taken: memory that is still in the cache is worth more than a system call (a 64K read(2) from a
// TUN into memory just used takes less than half of one into memory from a large rotating pool).
//
// Receive buffers have the size of the largest message and a number, which is the work request's
// id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory.h"
#include "transport/frame.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

struct Slab {
  std::span<std::byte> bytes;
  verbs::LocalKey key;
  std::uint32_t index = 0;  // in its pool
  std::uint32_t references = 0;
  Slab* next_free = nullptr;
};

// All functions but the constructor are for the data path of one worker.
class SlabPool {
 public:
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10;
  static_assert(kSlabBytes >= 2 * kMaxFrame);

  // Registers count * kSlabBytes bytes. Throws SystemError.
  SlabPool(verbs::Device& device, std::uint32_t count);
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  // The slab freed last, with one reference, which is the caller's; nullptr if all are in use.
  [[nodiscard]] Slab* take() noexcept;
  static void add_reference(Slab& slab) noexcept { ++slab.references; }
  void release(Slab& slab) noexcept;
  [[nodiscard]] std::uint32_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::size_t size() const noexcept { return slabs_.size(); }
  // Less than half of them are free.
  [[nodiscard]] bool is_short() const noexcept { return 2 * free_count_ < slabs_.size(); }

 private:
  MappedMemory memory_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::vector<Slab> slabs_;
  Slab* free_ = nullptr;
  std::uint32_t free_count_ = 0;
};

// A slab that is being filled, from its beginning to its end.
class SlabCursor {
 public:
  explicit SlabCursor(SlabPool& pool) noexcept : pool_(pool) {}
  ~SlabCursor() { reset(); }
  SlabCursor(const SlabCursor&) = delete;
  SlabCursor& operator=(const SlabCursor&) = delete;

  // Sees to it that `bytes`, at most a slab's, are free: in the slab at hand, in the same from its
  // beginning if nobody else needs it any more (the warmest memory there is), or in another. False
  // if there is none; then the one at hand is gone.
  [[nodiscard]] bool ensure(std::size_t bytes) noexcept;
  // Whether ensure() would find room.
  [[nodiscard]] bool has(std::size_t bytes) const noexcept;
  // After ensure(): the slab, and its next `bytes`.
  [[nodiscard]] Slab& slab() const noexcept { return *slab_; }
  [[nodiscard]] std::span<std::byte> next(std::size_t bytes) const noexcept {
    return slab_->bytes.subspan(at_, bytes);
  }
  // What lies in the slab up to the end of `used` is taken.
  void advance_past(std::span<const std::byte> used) noexcept {
    at_ = static_cast<std::size_t>(used.data() - slab_->bytes.data()) + used.size();
  }
  void reset() noexcept;

 private:
  SlabPool& pool_;
  Slab* slab_ = nullptr;
  std::size_t at_ = 0;
};

class ReceiveBuffers {
 public:
  // A multiple of 64 that is no multiple of a page: buffers whose addresses share their low twelve
  // bits with the place that they are copied to are copied at half the speed (4K aliasing).
  static constexpr std::size_t kBufferBytes = (kMaxMessage + 63) / 64 * 64 + 64;

  explicit ReceiveBuffers(verbs::Device& device) : device_(device) {}
  // Adds `count` buffers, registered, and returns the number of the first. Throws SystemError. Not
  // for the data path.
  std::uint32_t grow(std::uint32_t count);
  [[nodiscard]] std::span<std::byte> bytes(std::uint32_t index) const noexcept;
  [[nodiscard]] verbs::LocalKey key(std::uint32_t index) const noexcept;
  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(where_.size());
  }

 private:
  struct Chunk {
    MappedMemory memory;
    std::unique_ptr<verbs::MemoryRegion> region;
  };
  struct Place {
    std::span<std::byte> bytes;
    verbs::LocalKey key;
  };
  verbs::Device& device_;
  std::vector<Chunk> chunks_;
  std::vector<Place> where_;
};

}  // namespace ipoverbs::transport
