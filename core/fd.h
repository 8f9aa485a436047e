// Fd: move-only owner of a file descriptor; EventFd: a doorbell between threads.
#pragma once

#include <utility>

namespace ipoverbs {

// Closes its descriptor when destroyed. -1 means empty.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  // Gives the descriptor up: the caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

// eventfd(2), nonblocking: ring() makes fd() readable, silence() makes it unreadable again. Both
// are safe from any thread and never block.
class EventFd {
 public:
  // Throws SystemError.
  EventFd();
  // Takes over one that another process has made, nonblocking.
  explicit EventFd(Fd fd) noexcept : fd_(std::move(fd)) {}
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  void ring() noexcept;
  void silence() noexcept;

 private:
  Fd fd_;
};

// Sets O_NONBLOCK. Throws SystemError.
void set_nonblocking(int fd);

}  // namespace ipoverbs
