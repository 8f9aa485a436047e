#include "transport/buffers.h"

#include <cassert>

namespace ipoverbs::transport {

SlabPool::SlabPool(verbs::Device& device, std::uint32_t count)
    : memory_(count * kSlabBytes),
      region_(device.register_memory(memory_.bytes().first(count * kSlabBytes))),
      slabs_(count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    slabs_[i].bytes = memory_.bytes().subspan(i * kSlabBytes, kSlabBytes);
    slabs_[i].key = region_->local_key();
    slabs_[i].index = i;
    slabs_[i].references = 1;
    release(slabs_[i]);
  }
}

Slab* SlabPool::take() noexcept {
  if (free_ == nullptr) return nullptr;
  Slab* slab = free_;
  free_ = slab->next_free;
  slab->next_free = nullptr;
  slab->references = 1;
  --free_count_;
  return slab;
}

void SlabPool::release(Slab& slab) noexcept {
  assert(slab.references > 0);
  if (--slab.references > 0) return;
  slab.next_free = free_;
  free_ = &slab;
  ++free_count_;
}

bool SlabCursor::has(std::size_t bytes) const noexcept {
  if (pool_.free_count() > 0) return true;
  return slab_ != nullptr && (slab_->references == 1 || at_ + bytes <= slab_->bytes.size());
}

bool SlabCursor::ensure(std::size_t bytes) noexcept {
  if (slab_ != nullptr && at_ + bytes <= slab_->bytes.size()) return true;
  at_ = 0;
  if (slab_ != nullptr && slab_->references == 1) return true;
  reset();
  slab_ = pool_.take();
  return slab_ != nullptr;
}

void SlabCursor::reset() noexcept {
  if (slab_ != nullptr) pool_.release(*slab_);
  slab_ = nullptr;
}

std::uint32_t ReceiveBuffers::grow(std::uint32_t count) {
  const std::uint32_t first = this->count();
  MappedMemory memory(count * kBufferBytes);
  auto region = device_.register_memory(memory.bytes().first(count * kBufferBytes));
  for (std::uint32_t i = 0; i < count; ++i) {
    where_.push_back({memory.bytes().subspan(i * kBufferBytes, kBufferBytes), region->local_key()});
  }
  chunks_.push_back({std::move(memory), std::move(region)});
  return first;
}

std::span<std::byte> ReceiveBuffers::bytes(std::uint32_t index) const noexcept {
  return where_[index].bytes;
}

verbs::LocalKey ReceiveBuffers::key(std::uint32_t index) const noexcept {
  return where_[index].key;
}

}  // namespace ipoverbs::transport
