// MappedMemory: anonymous pages, on huge pages where the kernel has them to give.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace ipoverbs {

// Owns an anonymous private mapping, zero-filled, aligned to 2 MiB when it is at least that large.
// MAP_HUGETLB is tried first, then ordinary pages with MADV_HUGEPAGE (Documentation/admin-guide/mm/
// hugetlbpage.rst, transhuge.rst); the pages are not touched.
class MappedMemory {
 public:
  MappedMemory() = default;
  // `size` in bytes, rounded up to a page (or a huge page). Throws SystemError.
  explicit MappedMemory(std::size_t size);
  MappedMemory(MappedMemory&& other) noexcept
      : map_(std::exchange(other.map_, {})), usable_(std::exchange(other.usable_, {})) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(usable_, other.usable_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return usable_; }

 private:
  std::span<std::byte> map_;     // what munmap needs
  std::span<std::byte> usable_;  // the aligned part of it
};

}  // namespace ipoverbs
