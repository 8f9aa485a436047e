// ControlSocket: the listening UNIX socket of one daemon, and the proof that it is the only one.
//
// A path belongs to whoever answers on it. A socket file on which nobody listens was left by a
// process that was killed, and is replaced. Looking, removing and binding happen under a lock
// (flock(2)) on the folder, so that two daemons which start at once cannot both win; the lock
// leaves no file. The socket is for the daemon's user alone (mode 0600).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/fd.h"

namespace ipoverbs::daemon {

class ControlSocket {
 public:
  // Makes the folder of `path` if it is missing (mode 0755). Throws UsageError, one line, if
  // another daemon listens there, if `path` is something else than a socket, or if it cannot be
  // made.
  explicit ControlSocket(std::string path);
  // Removes the socket file, unless somebody has put another one in its place, and the folder if it
  // was made here and is empty.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // Nonblocking, listening.
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void make_folder();
  void remove_stale() const;
  void bind_and_listen();

  std::string path_;
  std::string folder_;
  bool made_folder_ = false;
  Fd fd_;
  ino_t inode_ = 0;
};

// Connects to the socket at `path`, sends `request` (format_request()) and returns all bytes of the
// answer until the other end closes. Throws SystemError; ETIMEDOUT if the daemon does not answer
// within some seconds.
[[nodiscard]] std::string ask_daemon(const std::string& path, std::string_view request);

}  // namespace ipoverbs::daemon
