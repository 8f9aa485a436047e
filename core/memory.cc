#include "core/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs {

namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

std::span<std::byte> map_pages(std::size_t size, int flags) {
  void* p =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (p == MAP_FAILED) return {};
  return {static_cast<std::byte*>(p), size};
}
}  // namespace

MappedMemory::MappedMemory(std::size_t size) {
  const bool large = size >= kHugePage;
  const std::size_t unit = large ? kHugePage : static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t wanted = round_up(size, unit);
  if (large) {
    map_ = map_pages(wanted, MAP_HUGETLB);
    usable_ = map_;
    if (!map_.empty()) return;
  }
  // mmap aligns to a small page: one huge page more leaves room to align by hand.
  map_ = map_pages(large ? wanted + kHugePage : wanted, 0);
  if (map_.empty()) throw SystemError(errno, fmt::format("map {} bytes of memory", wanted));
  const std::size_t skip = (unit - std::bit_cast<std::uintptr_t>(map_.data()) % unit) % unit;
  usable_ = map_.subspan(skip, wanted);
  // Advice: a kernel without transparent huge pages may refuse it, and small pages serve.
  if (large) ::madvise(usable_.data(), usable_.size(), MADV_HUGEPAGE);
}

MappedMemory::~MappedMemory() {
  if (!map_.empty()) ::munmap(map_.data(), map_.size());
}

}  // namespace ipoverbs
