// Epoll: epoll(7), level-triggered, for reading.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "core/fd.h"

namespace ipoverbs {

// One thread at a time, but for fd(), which may itself be watched by another.
class Epoll {
 public:
  // Throws SystemError.
  Epoll();
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Watches `fd`, which the caller keeps open; wait() reports it with `tag`. Throws SystemError.
  void add(int fd, std::uint32_t tag = 0);
  // The same on a data path. False if the kernel refuses.
  [[nodiscard]] bool try_add(int fd, std::uint32_t tag) noexcept;
  // Harmless for a descriptor that is not watched.
  void remove(int fd) noexcept;

  // Sleeps until something is ready or a signal comes. Returns what is ready, in `events`: its tag
  // in data.u32. Without a timeout: the kernel would start a timer for each sleep, which a Timer
  // that is watched does once.
  [[nodiscard]] std::span<const epoll_event> wait(std::span<epoll_event> events) noexcept;

 private:
  Fd fd_;
};

}  // namespace ipoverbs
