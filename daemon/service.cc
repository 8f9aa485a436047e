#include "daemon/service.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "daemon/offloads.h"
#include "daemon/service_notify.h"

namespace ipoverbs::daemon {

namespace {

const char* to_string(tun::LinkState state) {
  switch (state) {
    case tun::LinkState::Up:
      return "up";
    case tun::LinkState::Down:
      return "down";
    case tun::LinkState::Removed:
      return "removed";
  }
  return "";
}

std::string describe(const DaemonStatus& status) {
  return fmt::format("{} (MTU {}) over {} at {}, {} peers, {} workers", status.tun.config.name,
                     status.node.mtu.value(), status.node.device.device,
                     status.underlay.to_string(), status.node.peers.size(), status.node.workers);
}

}  // namespace

Service::Service(const UpOptions& options, DeviceFactory open_device, std::uint64_t node_id,
                 Logger& logger)
    : options_(options),
      logger_(logger),
      start_(monotonic_now()),
      signals_(io_, SIGINT, SIGTERM, SIGHUP),
      control_(options.control),
      first_device_(open_device(options.device, logger)),
      tun_(tun::Interface::create(options.tun, logger)),
      read_offloads_(tun::intersect(tun_.offloads().read, tun_.offloads().write)),
      timer_(io_) {
  options_.device.underlay.port = options_.transport.port;
  if (options_.offloads) {
    options_.transport.capabilities = to_capabilities(tun_.offloads().write);
  } else {
    options_.transport.capabilities = 0;
    read_offloads_ = tun_.set_read_offloads({});
  }
  auto opener = [this, open_device = std::move(open_device)] {
    return first_device_ ? std::move(first_device_) : open_device(options_.device, logger_);
  };
  node_.emplace(options_.transport, tun_.queues(), std::move(opener), node_id, logger,
                monotonic_now());
  node_watch_.emplace(io_, node_->event_fd(), [this] { turn_node(); });
  tun_watch_.emplace(io_, tun_.event_fd(), [this] { on_tun_event(); });
  server_.emplace(io_, control_.fd(), [this](Request request) {
    return request == Request::StatusText ? format_status_text(status())
                                          : format_status_json(status());
  });
}

Service::~Service() {
  notify_stopping();
  server_.reset();
  tun_watch_.reset();
  node_watch_.reset();
  node_.reset();
}

void Service::run() {
  wait_for_signal();
  turn_node();
  const std::string text = describe(status());
  logger_.info("up: {}", text);
  notify_ready(text);
  io_.run();
}

void Service::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    logger_.info("stopping: signal {}", signal);
    stop();
  });
}

void Service::turn_node() {
  node_->process(monotonic_now());
  follow_peers();
  set_timer();
}

void Service::set_timer() {
  // Far deadlines are cut short: time_point::max() is not for arithmetic.
  timer_.expires_at(std::min(node_->next_deadline(), monotonic_now() + std::chrono::hours(1)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) turn_node();
  });
}

// What is read from the TUN may leave undone only what every connected peer delivers.
void Service::follow_peers() {
  const std::uint32_t capabilities = node_->peer_capabilities();
  if (capabilities == peer_capabilities_ || !options_.offloads) return;
  peer_capabilities_ = capabilities;
  try {
    read_offloads_ = tun_.set_read_offloads(to_offloads(capabilities));
  } catch (const SystemError& error) {
    logger_.warn("{}: offloads were not set: {}", tun_.name(), error.what());
  }
}

void Service::on_tun_event() {
  tun_state_ = tun_.process_events();
  if (tun_state_ != tun::LinkState::Removed) return;
  throw SystemError(ENODEV, fmt::format("serve interface {}, which was removed", tun_.name()));
}

DaemonStatus Service::status() const {
  DaemonStatus status;
  const TimePoint now = monotonic_now();
  status.version = IPOVERBS_VERSION;
  status.pid = ::getpid();
  status.uptime = now - start_;
  status.underlay = options_.device.underlay;
  status.tun.config = options_.tun;
  status.tun.state = to_string(tun_state_);
  status.tun.queue_packets = tun_.queue_length();
  status.tun.read = read_offloads_;
  try {
    status.tun.kernel = tun_.statistics();
  } catch (const SystemError&) {
    status.tun.kernel.reset();  // the interface is gone: shown as null
  }
  status.node = node_->status(now);
  status.tun.write = to_offloads(options_.transport.capabilities & ~status.node.withdrawn);
  status.tun.withdrawn = to_offloads(status.node.withdrawn);
  return status;
}

}  // namespace ipoverbs::daemon
