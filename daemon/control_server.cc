#include "daemon/control_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace ipoverbs::daemon {

using boost::system::error_code;

// Shared with the connections and with operations under way, so that the io_context may end them
// after the ControlServer is gone.
class ControlServer::Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(asio::io_context& io, int fd, Handler handler)
      : io_(io), descriptor_(io, fd), pause_(io), handler_(std::move(handler)) {}

  void stop() {
    descriptor_.release();  // the descriptor stays the caller's
    pause_.cancel();
    handler_ = nullptr;
  }

  void accept_next();
  [[nodiscard]] bool stopped() const { return !handler_; }
  [[nodiscard]] std::string answer(Request request) const { return handler_(request); }
  void opened() { ++connections_; }
  void closed() {
    --connections_;
    accept_next();
  }
  [[nodiscard]] std::size_t connections() const { return connections_; }

 private:
  void accept_one();
  void wait_a_while();

  asio::io_context& io_;
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer pause_;
  Handler handler_;
  std::size_t connections_ = 0;
  bool waiting_ = false;  // for a client, or for better times
};

// Lives as long as one of its operations is under way.
class ControlServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Listener> listener, asio::io_context& io,
             asio::local::stream_protocol::socket socket)
      : listener_(std::move(listener)), socket_(std::move(socket)), timer_(io) {
    listener_->opened();
  }
  ~Connection() { listener_->closed(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    timer_.expires_after(kConnectionTime);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->close();
    });
    read();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(block_),
                            [self = shared_from_this()](error_code error, std::size_t size) {
                              self->on_read(error, size);
                            });
  }

  void on_read(error_code error, std::size_t size) {
    if (error || listener_->stopped()) return close();
    received_.append(block_.data(), size);
    const auto request = parse_request(received_);
    if (!request && request.error() == RequestError::Incomplete) return read();
    answer_ =
        request ? format_answer(listener_->answer(*request)) : format_refusal(request.error());
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code, std::size_t) { self->close(); });
  }

  void close() {
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

  std::shared_ptr<Listener> listener_;
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer timer_;
  std::array<char, kMaxRequest> block_{};
  std::string received_;  // below 2 * kMaxRequest bytes
  std::string answer_;
};

void ControlServer::Listener::accept_next() {
  if (waiting_ || stopped() || connections_ >= kMaxConnections) return;
  waiting_ = true;
  descriptor_.async_wait(asio::posix::descriptor_base::wait_read,
                         [self = shared_from_this()](error_code error) {
                           self->waiting_ = false;
                           if (!error && !self->stopped()) self->accept_one();
                         });
}

void ControlServer::Listener::accept_one() {
  const int fd =
      ::accept4(descriptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) return wait_a_while();
  if (fd >= 0) {
    asio::local::stream_protocol::socket socket(io_, asio::local::stream_protocol(), fd);
    std::make_shared<Connection>(shared_from_this(), io_, std::move(socket))->start();
  }
  accept_next();
}

// No descriptor is left, or no memory: the client stays in the backlog.
void ControlServer::Listener::wait_a_while() {
  waiting_ = true;
  pause_.expires_after(std::chrono::seconds(1));
  pause_.async_wait([self = shared_from_this()](error_code) {
    self->waiting_ = false;
    self->accept_next();
  });
}

ControlServer::ControlServer(asio::io_context& io, int listener, Handler handler)
    : listener_(std::make_shared<Listener>(io, listener, std::move(handler))) {
  listener_->accept_next();
}

ControlServer::~ControlServer() { listener_->stop(); }

std::size_t ControlServer::connections() const { return listener_->connections(); }

}  // namespace ipoverbs::daemon
