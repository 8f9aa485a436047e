// FakeTun: a pair of sockets that keeps the bounds of its records, as a TUN queue does.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "core/error.h"
#include "core/fd.h"
#include "tests/support/packets.h"

namespace ipoverbs::support {

// Waits until one of `fds` is readable, negative ones left out, or for 50 us: work of other threads
// that no descriptor tells is looked for again then.
inline void wait_for_any(std::array<int, 2> fds) {
  std::array<pollfd, 2> waiting{{{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}}};
  const timespec most{.tv_sec = 0, .tv_nsec = 50'000};
  ::ppoll(waiting.data(), waiting.size(), &most, nullptr);
}

class FakeTun {
 public:
  FakeTun() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw SystemError(errno, "create a pair of sockets");
    }
    queue_ = Fd(ends[0]);
    host_ = Fd(ends[1]);
    for (const int end : ends) {
      const int size = 8 << 20;
      ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
  }
  // What the worker reads and writes.
  [[nodiscard]] int queue() const { return queue_.get(); }
  // The host sends a packet. False if the queue is full.
  bool send(const Bytes& packet, const tun::VirtioNetHeader& header = {}) {
    const Bytes record = with_header(packet, header);
    return ::write(host_.get(), record.data(), record.size()) ==
           static_cast<ssize_t>(record.size());
  }
  // The next record that the host got, header included.
  std::optional<Bytes> receive_record() {
    Bytes record(tun::kMaxRecord);
    const ssize_t n = ::read(host_.get(), record.data(), record.size());
    if (n <= 0) return std::nullopt;
    record.resize(static_cast<std::size_t>(n));
    return record;
  }
  // The next packet that the host got.
  std::optional<Bytes> receive() {
    auto record = receive_record();
    if (record) record->erase(record->begin(), record->begin() + sizeof(tun::VirtioNetHeader));
    return record;
  }
  // The interface is gone: reads and writes of the queue fail.
  void close_host() { host_.reset(); }

 private:
  Fd queue_;
  Fd host_;
};

}  // namespace ipoverbs::support
