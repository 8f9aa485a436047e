// The control path of the loopback network: connection manager identities, what they say to each
// other, and the events that come of it.
//
// Nothing in here locks: who calls holds the network's mutex. Messages between two addresses that
// cannot reach each other are kept in order and arrive when the partition is healed, as the
// connection manager's repetitions would make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/ip.h"
#include "tests/support/loopback_queues.h"
#include "verbs/device.h"

namespace ipoverbs::support {

struct LoopbackHost;

// Reject reasons (IB specification, table "REJ reason codes"; rdma_cm hands them out as status).
inline constexpr int kRejectTimeout = 4;
inline constexpr int kRejectNoListener = 8;  // invalid service ID
inline constexpr int kRejectConsumer = 28;

// One end of a connection, as an rdma_cm_id is.
struct Identity {
  enum class State : std::uint8_t {
    Idle,                // dialled; RouteResolved not handed out
    Resolved,            // may connect
    Requesting,          // REQ sent
    Requested,           // REQ received; may accept or reject
    Accepted,            // REP sent
    Answered,            // REP received; Established not handed out
    Established,         // RTU sent or received
    Disconnecting,       // DREQ sent
    DisconnectReceived,  // Disconnected not handed out
    Closed,
  };
  LoopbackHost* host = nullptr;
  verbs::Connection* owner = nullptr;  // null until ConnectRequest is handed out
  State state = State::Idle;
  Endpoint local;
  Endpoint remote;
  std::weak_ptr<Identity> peer;
  std::unique_ptr<LoopbackQp> qp;
};

struct PendingEvent {
  verbs::EventKind kind{};
  std::shared_ptr<Identity> identity{};  // null: device-wide
  std::vector<std::byte> private_data{};
  std::string detail{};
  int status = 0;
};

// One open device.
struct LoopbackHost {
  LoopbackContext context;
  bool fail_unknown_at_once = false;
  std::deque<PendingEvent> events;
  EventFd bell;
};

class Exchange {
 public:
  Exchange(Queues& queues, const Partitions& partitions)
      : queues_(queues), partitions_(partitions) {}

  void add(LoopbackHost& host);
  void remove(LoopbackHost& host);
  // Throw SystemError, as verbs::Device and verbs::Connection say.
  void listen(LoopbackHost& host, std::uint16_t port);
  [[nodiscard]] std::shared_ptr<Identity> dial(LoopbackHost& host, const Endpoint& remote);
  void connect(const std::shared_ptr<Identity>& id, std::span<const std::byte> private_data);
  void accept(const std::shared_ptr<Identity>& id, std::span<const std::byte> private_data);
  void reject(const std::shared_ptr<Identity>& id, std::span<const std::byte> private_data);
  void disconnect(const std::shared_ptr<Identity>& id);
  // Says goodbye as the state asks, destroys the queue pair, drops the events.
  void destroy(const std::shared_ptr<Identity>& id);

  // Takes the host's next event, which must exist, and does what handing it out implies.
  [[nodiscard]] PendingEvent take_event(LoopbackHost& host);
  void push_event(LoopbackHost& host, PendingEvent event);

  // The device is gone: it hears and says nothing more; the peers are told.
  void remove_device(const IpAddress& underlay);
  // Delivers what a partition held back.
  void retry();
  // Queue pairs from `local` to `remote`, oldest first.
  [[nodiscard]] std::vector<std::uint32_t> queue_pairs(const IpAddress& local,
                                                       const IpAddress& remote) const;
  // Asserts that there is such a queue pair.
  [[nodiscard]] std::shared_ptr<Identity> owner_of(std::uint32_t qp_num) const;
  void report(const IpAddress& underlay, verbs::EventKind kind, const std::string& detail);
  void report(std::uint32_t qp_num, verbs::EventKind kind, const std::string& detail);
  [[nodiscard]] std::size_t host_count() const { return hosts_.size(); }

 private:
  enum class Say : std::uint8_t { Resolve, Request, Reply, ReadyToUse, Reject, Disconnect, Bye };
  struct Message {
    Say say{};
    std::shared_ptr<Identity> from{};  // a message may outlive its sender's Connection
    std::weak_ptr<Identity> to{};      // empty for Resolve and Request
    std::vector<std::byte> private_data{};
    int reason = 0;
  };
  void send(Message message);
  void arrive(const Message& message);
  void request_arrives(const Message& message);
  void reject_arrives(const std::shared_ptr<Identity>& id, const Message& message);
  void disconnect_arrives(const std::shared_ptr<Identity>& id, const Message& message);
  void say_goodbye(const std::shared_ptr<Identity>& id);
  void report_disconnected(const std::shared_ptr<Identity>& id);
  [[nodiscard]] bool anyone_at(const IpAddress& address) const;

  Queues& queues_;
  const Partitions& partitions_;
  std::vector<LoopbackHost*> hosts_;
  std::map<Endpoint, LoopbackHost*> listeners_;  // scope 0
  std::vector<std::weak_ptr<Identity>> identities_;
  std::deque<Message> held_;
  std::uint16_t next_port_ = 40000;
};

}  // namespace ipoverbs::support
