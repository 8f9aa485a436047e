// Connections: all connections of one software device, on its control thread.
//
// Theory of operation. It owns the connection manager and carries out what that puts out, in
// order: messages go to QP1's port, changes of queue pairs to the workers, events into a queue
// that process_events() hands to the user.
//
// After a worker's command was handed over and only then the message leaves that lets the other
// side send: the worker runs its commands before it looks at what has come.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "verbs/device.h"
#include "verbs/soft/cm_machine.h"
#include "verbs/soft/gsi_port.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/soft_connection.h"
#include "verbs/soft/worker.h"

namespace ipoverbs::verbs::soft {

// What a new queue pair of a worker gets.
struct QueuePairPlace {
  QpNumber number;                 // at least 2, not used for long
  Endpoint local;                  // address and port that the worker sends from
  std::uint64_t window_limit = 0;  // bytes under way, as SendWindow counts them
};

// The way to a host as it is now.
struct Route {
  int error = 0;           // the errno value that says why there is none
  PathMtu path_mtu{4096};  // the largest whose packets it takes
};

// What the device is to its connections. Outlives them.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // `queue` is a completion queue of the device. Throws SystemError.
  [[nodiscard]] virtual QueuePairPlace place_queue_pair(CompletionQueue& queue) = 0;
  [[nodiscard]] virtual Route route_to(const IpAddress& remote) const = 0;
  // process_events() wants to be called again, or deadline() has changed.
  virtual void wake() noexcept = 0;
};

struct ConnectionsConfig {
  PathMtu path_mtu{1024};  // the most that is asked for or accepted; the route may take less
  ConnectionTimers timers;
  std::uint32_t max_send_wr = 0;  // limits of create_queue_pair()
  std::uint32_t max_recv_wr = 0;
  std::uint64_t seed = 0;  // of communication IDs, PSNs and the CA GUID
};

class Connections {
 public:
  // All references outlive it. `context` is that of make_context().
  Connections(ConnectionHost& host, GsiPort& port, const TimeSource& time, ibv_context& context,
              const MemoryTable& memory, const ConnectionsConfig& config);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  // Every connection has been destroyed.
  ~Connections();

  // As Device's functions of these names.
  void listen(std::uint16_t port);
  [[nodiscard]] std::unique_ptr<Connection> dial(const RemoteAddress& remote,
                                                 const PathOptions& path);
  int process_events(EventHandler& handler);
  // When process_events() wants to be called though nobody wakes; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> deadline() const;

  // What a worker has found out (EngineObserver): IBV_WC_SUCCESS, the first message has come;
  // otherwise the queue pair has failed.
  void on_notice(QpNumber qp, ibv_wc_status status);

  [[nodiscard]] const CmMachine& manager() const { return manager_; }

  // --- Of SoftConnection ----------------------------------------------------------------------
  void add(SoftConnection& connection);
  // Its events that are pending are dropped, and the manager told.
  void remove(SoftConnection& connection) noexcept;
  // The manager knows the connection by this ID; not any more by what it was.
  void identify(SoftConnection& connection, CommId id) { by_id_[id] = &connection; }
  void forget(const SoftConnection& connection) noexcept;
  [[nodiscard]] CmMachine& manager() { return manager_; }
  // Carries out what the manager has put out.
  void carry_out();
  [[nodiscard]] ConnectionHost& host() { return host_; }
  [[nodiscard]] TimePoint now() const { return time_.now(); }
  [[nodiscard]] ibv_context& context() { return context_; }
  [[nodiscard]] const MemoryTable& memory() const { return memory_; }
  [[nodiscard]] const ConnectionsConfig& config() const { return config_; }
  [[nodiscard]] const Endpoint& local() const { return port_.local(); }

 private:
  struct Pending {
    EventKind kind{};
    SoftConnection* connection = nullptr;
    std::unique_ptr<SoftConnection> incoming{};
    CmEvent cause{};
    std::string detail{};
    int status = 0;
  };

  void on_output(const CmSend& send);
  void on_output(const CmQueuePairConnect& connect);
  void on_output(const CmQueuePairFlush& flush);
  void on_output(const CmEvent& event);
  void push(Pending event);
  void hand_on(Pending event, EventHandler& handler);
  [[nodiscard]] SoftConnection* find(CommId id) const;
  [[nodiscard]] SoftConnection* find(QpNumber number) const;

  ConnectionHost& host_;
  GsiPort& port_;
  const TimeSource& time_;
  ibv_context& context_;
  const MemoryTable& memory_;
  ConnectionsConfig config_;
  CmMachine manager_;
  std::set<std::uint16_t> listening_;
  std::set<SoftConnection*> connections_;
  std::unordered_map<CommId, SoftConnection*> by_id_;
  std::deque<Pending> pending_;
};

}  // namespace ipoverbs::verbs::soft
