// Service: one running daemon, from checked options to its end.
//
// Theory of operation. Everything is owned here and made in an order in which what the user got
// wrong shows before anything is changed for others:
//
//   ControlSocket      is another daemon here?
//   verbs::Device      is there such an underlay, on an RDMA device that can be used?
//   tun::Interface     made and configured
//   transport::Node    workers, listening, dialling
//   ControlServer      answers `ipoverbs status`
//
// and taken down in the opposite order, whatever ends it. One thread, the caller's, runs all of it
// in an asio::io_context: it waits for the node's descriptor and deadline, the interface's
// descriptor, control clients and signals. SIGTERM, SIGINT and SIGHUP end the service; one that
// comes while it is being set up ends it once it is.
#pragma once

#include <memory>
#include <optional>

#include "core/clock.h"
#include "core/log.h"
#include "daemon/asio.h"
#include "daemon/control_server.h"
#include "daemon/control_socket.h"
#include "daemon/status_report.h"
#include "daemon/up_options.h"
#include "daemon/watch.h"
#include "transport/node.h"
#include "tun/interface.h"

namespace ipoverbs::daemon {

// Makes the device; here so that tests can give another than verbs::open_rdma_device().
using DeviceFactory =
    std::function<std::unique_ptr<verbs::Device>(const verbs::DeviceRequest&, Logger&)>;

class Service {
 public:
  // `node_id`: random. `logger` outlives it. Throws UsageError and SystemError; then nothing is
  // left.
  Service(const UpOptions& options, DeviceFactory open_device, std::uint64_t node_id,
          Logger& logger);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Returns after a signal or stop(). Throws SystemError if it cannot go on: the interface was
  // removed.
  void run();
  void stop() { io_.stop(); }
  [[nodiscard]] DaemonStatus status() const;

 private:
  void wait_for_signal();
  void turn_node();
  void set_timer();
  void follow_peers();
  void on_tun_event();

  UpOptions options_;
  Logger& logger_;
  TimePoint start_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  ControlSocket control_;
  std::unique_ptr<verbs::Device> first_device_;  // until the node takes it
  tun::Interface tun_;
  tun::LinkState tun_state_ = tun::LinkState::Up;
  tun::Offloads read_offloads_;
  std::optional<transport::Node> node_;
  std::uint32_t peer_capabilities_ = ~std::uint32_t{0};
  asio::steady_timer timer_;
  std::optional<Watch> node_watch_;
  std::optional<Watch> tun_watch_;
  std::optional<ControlServer> server_;
};

}  // namespace ipoverbs::daemon
