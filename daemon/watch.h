// Watch: calls a function whenever a descriptor of somebody else's is readable.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "daemon/asio.h"

namespace ipoverbs::daemon {

// The descriptor stays its owner's, who may close it after the Watch's destruction. The function
// has to take in what made it readable, or it is called again at once.
class Watch {
 public:
  Watch(asio::io_context& io, int fd, std::function<void()> on_readable)
      : state_(std::make_shared<State>(io, fd, std::move(on_readable))) {
    wait(state_);
  }
  ~Watch() {
    state_->descriptor.release();
    state_->on_readable = nullptr;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  struct State {
    State(asio::io_context& io, int fd, std::function<void()> f)
        : descriptor(io, fd), on_readable(std::move(f)) {}
    asio::posix::stream_descriptor descriptor;
    std::function<void()> on_readable;
  };

  static void wait(const std::shared_ptr<State>& state) {
    state->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                 [state](const boost::system::error_code& error) {
                                   if (error || !state->on_readable) return;
                                   state->on_readable();
                                   if (state->on_readable) wait(state);
                                 });
  }

  std::shared_ptr<State> state_;
};

}  // namespace ipoverbs::daemon
