// The inside of Node: see node.h for what it is, here for how it works.
//
// Theory of operation. Peers and their sessions live as long as the node. The Fabric, an opened
// device with its workers, lives as long as that incarnation of the device: when the device is
// removed, the workers are stopped, every connection, queue and registration is destroyed, then the
// device; from then on the opener is asked once a second until the device is back, and everything
// is made anew.
//
// One connection, from birth to end:
//
//   dial, or take a request    the session owns the Connection
//   create_queue_pair          a LinkId is given; the worker attaches the link, then connect or
//   accept Established                the worker activates the link failure, of any kind       the
//   Connection moves to `retired`; the worker detaches the link Detached report            nobody
//   posts any more: the Connection is destroyed, the worker forgets
//
// A session's place among the workers is its index modulo their number, at both ends. There are as
// many sessions with a peer as the larger number of workers, which is known once the peer's hello
// has come.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/epoll.h"
#include "core/fd.h"
#include "core/log.h"
#include "transport/node.h"
#include "transport/route_table.h"
#include "transport/session_machine.h"
#include "transport/worker.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

struct Session {
  Session(NodeId own, const SessionMachine::Timing& timing, TimePoint now)
      : machine(own, timing, now) {}

  SessionMachine machine;
  std::unique_ptr<verbs::Connection> connection;  // none in Backoff
  std::optional<LinkId> link;                     // once there is a queue pair
  bool dialled = false;                           // by us: connect, not accept
  std::optional<Hello> hello;                     // of the far end, once known
  std::shared_ptr<LinkGauges> gauges = std::make_shared<LinkGauges>();
  verbs::QueuePairAttributes attributes;  // while Established
  std::string logged_error;               // said already
};

struct Peer {
  std::vector<Session> sessions;
  IpMtu mtu;                       // of the far end; 0 before the first hello
  std::uint32_t capabilities = 0;  // of the far end
};

struct RetiredConnection {
  std::unique_ptr<verbs::Connection> connection;
  unsigned worker = 0;
};

// An opened device and all that was made from it, in the order in which it must not be destroyed.
struct Fabric {
  std::unique_ptr<verbs::Device> device;
  std::vector<std::unique_ptr<Worker>> workers;
  std::map<LinkId, RetiredConnection> retired;
};

class Node::Impl final : public verbs::EventHandler {
 public:
  Impl(Options options, std::span<const int> tun_queues, DeviceOpener opener, NodeId id,
       Logger& logger, TimePoint now);
  ~Impl() override;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] int event_fd() const { return epoll_.fd(); }
  [[nodiscard]] TimePoint next_deadline() const;
  void process(TimePoint now);
  [[nodiscard]] Status status(TimePoint now) const;
  [[nodiscard]] std::uint32_t peer_capabilities() const;

  void on_event(verbs::Event& event) override;

 private:
  // node.cc: the device's life
  void open_device();
  void close_device(const std::string& why);
  void keep_counts();
  void process_reports();
  void withdraw(std::uint32_t capabilities);
  void process_timers();
  // node_sessions.cc: connections
  [[nodiscard]] Session* find(const verbs::Connection* connection);
  [[nodiscard]] Session* find(LinkId link);
  [[nodiscard]] std::optional<PeerIndex> peer_at(const Endpoint& remote, std::uint16_t port) const;
  [[nodiscard]] Peer& peer_of(const Session& session);
  [[nodiscard]] std::string describe(const Session& session) const;
  void dial(PeerIndex peer, unsigned index);
  void on_attached(Session& session);
  void on_request(verbs::Event& event);
  void on_established(Session& session, std::span<const std::byte> private_data);
  void accept(Session& session, std::unique_ptr<verbs::Connection> incoming, const Hello& hello);
  void create_link(Session& session);
  void fail(Session& session, const std::string& why);     // says so, then
  void tell(Session& session, const std::string& why);     // once, until another reason
  void give_up(Session& session, const std::string& why);  // what fail() does, unsaid
  void on_rejected(Session& session, const verbs::Event& event);
  void retire(Session& session);
  void finish_retired(LinkId link);
  void match_sessions(PeerIndex peer, unsigned workers_of_peer);
  [[nodiscard]] Hello hello_for(unsigned index, const Session& session) const;
  [[nodiscard]] unsigned index_of(const Session& session) const;
  [[nodiscard]] PeerIndex peer_index_of(const Session& session) const;
  [[nodiscard]] Worker& worker_of(unsigned index);
  void drop(std::unique_ptr<verbs::Connection> incoming, RejectReason reason);
  // node_status.cc
  [[nodiscard]] PeerStatus peer_status(PeerIndex peer, TimePoint now) const;
  [[nodiscard]] SessionStatus session_status(const Session& session, unsigned index,
                                             TimePoint now) const;

  struct PeerTotals {
    std::uint64_t tx_packets = 0, tx_bytes = 0, rx_packets = 0, rx_bytes = 0;
  };

  const Options options_;
  const RouteTable routes_;
  const std::vector<int> tun_queues_;
  const DeviceOpener opener_;
  const NodeId id_;
  Logger& logger_;
  TimePoint now_;
  Epoll epoll_;
  EventFd report_bell_;
  std::vector<Peer> peers_;
  std::unique_ptr<Fabric> fabric_;  // null while there is no device
  bool removed_ = false;            // reported by the device, to be acted on
  TimePoint reopen_at_ = TimePoint::max();
  std::string device_state_;
  verbs::Capabilities last_capabilities_;
  std::uint32_t withdrawn_ = 0;  // of options_.capabilities, since the kernel refused (Refusals)
  std::uint32_t next_link_ = 1;
  // What workers that are gone had counted.
  std::array<std::uint64_t, kCounterCount> past_counters_{};
  DoorbellCounts past_doorbells_;
  std::vector<PeerTotals> past_totals_;
};

}  // namespace ipoverbs::transport
