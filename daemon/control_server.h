// ControlServer: answers control requests (control.h) on a listening UNIX socket.
//
// A client that is slow, silent or hostile costs bounded memory and never holds up the daemon: all
// I/O is asynchronous, a request has kMaxRequest bytes at most, a connection lives for
// kConnectionTime at most, and beyond kMaxConnections further clients wait in the kernel's backlog.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/clock.h"
#include "daemon/asio.h"
#include "daemon/control.h"

namespace ipoverbs::daemon {

class ControlServer {
 public:
  static constexpr std::size_t kMaxConnections = 16;
  static constexpr Duration kConnectionTime = std::chrono::seconds(5);

  // The text that answers a request. Called from the thread that runs `io`, never after the
  // ControlServer's destruction.
  using Handler = std::function<std::string(Request)>;

  // `listener`: nonblocking and listening; stays the caller's. Throws boost::system::system_error.
  ControlServer(asio::io_context& io, int listener, Handler handler);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] std::size_t connections() const;

 private:
  class Listener;
  class Connection;
  std::shared_ptr<Listener> listener_;
};

}  // namespace ipoverbs::daemon
