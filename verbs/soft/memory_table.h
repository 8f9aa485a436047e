// Registered memory, found by local key.
//
// Any thread registers and deregisters, one at a time; workers look keys up at the same time,
// without a lock: a slot's key is written last and cleared first. A key names its slot and how
// often the slot was used, so that the key of memory that is gone is not taken for that of new
// memory soon.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "verbs/device.h"

namespace ipoverbs::verbs::soft {

class MemoryTable {
 public:
  static constexpr std::uint32_t kSlots = 1024;
  MemoryTable() : slots_(std::make_unique<std::array<Slot, kSlots>>()) {}

  // Any thread. nullopt when all slots are taken.
  [[nodiscard]] std::optional<LocalKey> add(std::span<std::byte> memory);
  // Any thread; nobody may use the memory any more.
  void remove(LocalKey key);
  // Any thread: whether all of `sge` is registered under its key. Zero bytes always are.
  [[nodiscard]] bool covers(const ibv_sge& sge) const noexcept;

 private:
  static constexpr unsigned kGenerationBits = 8;
  struct Slot {
    std::atomic<std::uint32_t> key{0};  // 0: free
    std::atomic<std::uint64_t> begin{0};
    std::atomic<std::uint64_t> size{0};
    std::uint32_t generation = 0;
  };
  std::mutex mutex_;  // who writes a slot
  std::unique_ptr<std::array<Slot, kSlots>> slots_;
};

}  // namespace ipoverbs::verbs::soft
