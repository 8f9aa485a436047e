// Bytes for the checksum tests: random ones, and ones between pages that nobody may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "core/error.h"

namespace ipoverbs::csum {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// The same for the same seed.
inline Bytes random_bytes(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// At least `size` writable bytes with an inaccessible page before and after them.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t size)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        size_((size + page_ - 1) / page_ * page_) {
    map_ = ::mmap(nullptr, size_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) throw SystemError(errno, "map guarded memory");
    if (::mprotect(begin(), size_, PROT_READ | PROT_WRITE) != 0) {
      throw SystemError(errno, "open guarded memory");
    }
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { ::munmap(map_, size_ + 2 * page_); }

  // The first n bytes, right after the page before, or the last n, right before the page after.
  [[nodiscard]] std::span<std::byte> first(std::size_t n) const { return {begin(), n}; }
  [[nodiscard]] std::span<std::byte> last(std::size_t n) const { return {begin() + size_ - n, n}; }

 private:
  [[nodiscard]] std::byte* begin() const { return static_cast<std::byte*>(map_) + page_; }

  std::size_t page_;
  std::size_t size_;
  void* map_ = nullptr;
};

}  // namespace ipoverbs::csum
