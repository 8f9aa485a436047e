#include "verbs/soft/memory_table.h"

#include <bit>

namespace ipoverbs::verbs::soft {

std::optional<LocalKey> MemoryTable::add(std::span<std::byte> memory) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = (*slots_)[i];
    if (slot.key.load(std::memory_order_relaxed) != 0) continue;
    slot.generation = (slot.generation + 1) % (1U << kGenerationBits);
    slot.begin.store(std::bit_cast<std::uint64_t>(memory.data()), std::memory_order_relaxed);
    slot.size.store(memory.size(), std::memory_order_relaxed);
    // Slot numbers count from 1 in a key: no key is 0.
    const std::uint32_t key = (i + 1) << kGenerationBits | slot.generation;
    slot.key.store(key, std::memory_order_release);
    return LocalKey(key);
  }
  return std::nullopt;
}

void MemoryTable::remove(LocalKey key) {
  const std::scoped_lock lock(mutex_);
  (*slots_)[(key.value() >> kGenerationBits) - 1].key.store(0, std::memory_order_release);
}

bool MemoryTable::covers(const ibv_sge& sge) const noexcept {
  if (sge.length == 0) return true;
  const std::uint32_t index = (sge.lkey >> kGenerationBits) - 1;
  if (index >= kSlots) return false;
  const Slot& slot = (*slots_)[index];
  if (slot.key.load(std::memory_order_acquire) != sge.lkey) return false;
  const std::uint64_t begin = slot.begin.load(std::memory_order_relaxed);
  const std::uint64_t size = slot.size.load(std::memory_order_relaxed);
  return sge.addr >= begin && sge.length <= size && sge.addr - begin <= size - sge.length;
}

}  // namespace ipoverbs::verbs::soft
