#include "core/epoll.h"

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace ipoverbs {

Epoll::Epoll() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!fd_) throw SystemError(errno, "create an epoll descriptor");
}

void Epoll::add(int fd, std::uint32_t tag) {
  if (!try_add(fd, tag)) throw SystemError(errno, "watch a descriptor");
}

bool Epoll::try_add(int fd, std::uint32_t tag) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = tag;
  return ::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Epoll::remove(int fd) noexcept { ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::span<const epoll_event> Epoll::wait(std::span<epoll_event> events) noexcept {
  const int n = ::epoll_wait(fd_.get(), events.data(), static_cast<int>(events.size()), -1);
  return events.first(static_cast<std::size_t>(std::max(n, 0)));
}

}  // namespace ipoverbs
