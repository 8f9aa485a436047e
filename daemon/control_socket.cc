#include "daemon/control_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/clock.h"
#include "core/error.h"
#include "daemon/settings.h"

namespace ipoverbs::daemon {

namespace {

constexpr int kBacklog = 16;
constexpr auto kAnswerTime = std::chrono::seconds(5);

[[noreturn]] void refuse_path(const std::string& path, std::string_view what) {
  throw UsageError(fmt::format("--control: {}: {}", quote(path), what));
}

sockaddr_un to_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    refuse_path(path,
                fmt::format("a path of 1 to {} bytes is needed", sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Fd make_socket(int flags) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) throw SystemError(errno, "make a UNIX socket");
  return fd;
}

// 0 or an errno.
int connect_to(const Fd& fd, const std::string& path) {
  const sockaddr_un address = to_address(path);
  // The sockets interface takes every address by this type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof address) == 0 ? 0 : errno;
}

// Holds the lock of a folder. It is held for the time of a few system calls only.
Fd lock_folder(const std::string& folder, const std::string& path) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) refuse_path(path, fmt::format("folder {}: {}", quote(folder), std::strerror(errno)));
  for (int tries = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == 100) refuse_path(path, "another program holds the lock of its folder");
    // A second at most, at the start, and only while another daemon starts in the same folder.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // allowed: nothing runs yet
  }
  return fd;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

ControlSocket::ControlSocket(std::string path)
    : path_(std::move(path)), folder_(folder_of(path_)), fd_(make_socket(SOCK_NONBLOCK)) {
  to_address(path_);
  make_folder();
  try {
    const Fd lock = lock_folder(folder_, path_);
    remove_stale();
    bind_and_listen();
  } catch (...) {
    if (made_folder_) ::rmdir(folder_.c_str());
    throw;
  }
}

ControlSocket::~ControlSocket() {
  struct stat now{};
  if (::lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_) ::unlink(path_.c_str());
  if (made_folder_) ::rmdir(folder_.c_str());
}

void ControlSocket::make_folder() {
  if (::mkdir(folder_.c_str(), 0755) == 0) {
    made_folder_ = true;
  } else if (errno != EEXIST) {
    refuse_path(path_,
                fmt::format("cannot make folder {}: {}", quote(folder_), std::strerror(errno)));
  }
}

void ControlSocket::remove_stale() const {
  struct stat found{};
  if (::lstat(path_.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) refuse_path(path_, "is there and is not a socket");
  const int error = connect_to(make_socket(SOCK_NONBLOCK), path_);
  if (error == 0 || error == EAGAIN) {
    refuse_path(path_, "another ipoverbs daemon answers there; choose another --tun or --control");
  }
  if (error != ECONNREFUSED) refuse_path(path_, std::strerror(error));
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) refuse_path(path_, std::strerror(errno));
}

void ControlSocket::bind_and_listen() {
  const sockaddr_un address = to_address(path_);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // bind() gives the file the mode of the socket's inode (net/unix/af_unix.c, unix_bind_bsd).
  if (::fchmod(fd_.get(), 0600) != 0 || ::bind(fd_.get(), generic, sizeof address) != 0) {
    refuse_path(path_, fmt::format("cannot make the socket: {}", std::strerror(errno)));
  }
  struct stat made{};
  if (::lstat(path_.c_str(), &made) == 0) inode_ = made.st_ino;
  if (::listen(fd_.get(), kBacklog) != 0) {
    const int error = errno;
    ::unlink(path_.c_str());
    throw SystemError(error, fmt::format("listen on {}", path_));
  }
}

std::string ask_daemon(const std::string& path, std::string_view request) {
  const std::string tried = fmt::format("ask the daemon at {}", path);
  const Fd fd = make_socket(0);
  const timeval limit{std::chrono::seconds(kAnswerTime).count(), 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (const int error = connect_to(fd, path); error != 0) throw SystemError(error, tried);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    throw SystemError(errno, tried);
  }
  const TimePoint deadline = monotonic_now() + kAnswerTime;
  std::string answer;
  std::array<char, 65536> block;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - monotonic_now());
    pollfd readable{fd.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) {
      throw SystemError(ETIMEDOUT, tried);
    }
    const ssize_t got = ::recv(fd.get(), block.data(), block.size(), 0);
    if (got == 0) return answer;
    if (got < 0 && errno != EINTR) throw SystemError(errno, tried);
    if (got > 0) answer.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace ipoverbs::daemon
