#include "tun/lock.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

struct AbstractAddress {
  explicit AbstractAddress(const std::string& text)
      : length(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())) {
    un.sun_family = AF_UNIX;
    // sun_path[0] stays zero: that makes the name abstract, and its length part of it.
    std::memcpy(un.sun_path + 1, text.data(), text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&un); }

  sockaddr_un un{};
  socklen_t length;
};

Fd stream_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw SystemError(errno, "open a UNIX socket");
  return fd;
}

// The process id of whoever listens at `address`, as text.
std::string describe_holder(const AbstractAddress& address) {
  const Fd fd = stream_socket();
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::connect(fd.get(), address.get(), address.length) != 0 ||
      ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0) {
    return "another process";
  }
  return fmt::format("process {}", peer.pid);
}

}  // namespace

Fd lock_interface(const std::string& name) {
  const AbstractAddress address("ipoverbs-tun/" + name);
  Fd fd = stream_socket();
  if (::bind(fd.get(), address.get(), address.length) != 0) {
    const int error = errno;
    if (error != EADDRINUSE) throw SystemError(error, fmt::format("lock interface {}", name));
    throw UsageError(fmt::format("interface {} already belongs to {}: one ipoverbs at a time", name,
                                 describe_holder(address)));
  }
  // Listens only so that connect() tells who holds the lock.
  if (::listen(fd.get(), 8) != 0) throw SystemError(errno, fmt::format("lock interface {}", name));
  return fd;
}

}  // namespace ipoverbs::tun
