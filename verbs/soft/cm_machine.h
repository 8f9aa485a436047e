// The connection manager: sets reliable connections up and takes them down by CM messages.
//
// Theory of operation. No I/O and no clock: messages, what the user wants and the time come in;
// take() yields what is to be done, in order: messages to send, queue pairs to move, events for the
// user. Order matters: a queue pair is ready to receive before the message leaves that lets the
// other side send to it, and is flushed before the user hears of the end. Drain take() after every
// call.
//
//   who dials                      who listens
//   connect()     REQ ->
//                                  ConnectRequest; accept() or reject()
//                 <- REP           CmQueuePairConnect, then the REP
//   CmQueuePairConnect, then the
//   RTU ->        Established      Established (by the RTU, or by the first data: data_received())
//   disconnect()
//   CmQueuePairFlush, then the
//   DREQ ->                        CmQueuePairFlush, DREP, Disconnected
//   Disconnected  <- DREP
//
// CmState (verbs/soft/cm_connection.h) has the states. Peers are the kernel's CM
// (drivers/infiniband/core/cm.c) and this one; what the kernel does with duplicates, unknown and
// stale connections is done here too, with these differences:
// - REQ, REP and DREQ are sent again after CmConfig::first_resend and from then on at twice the
//   interval before, up to longest_resend (the kernel's: 4 to 6 s), at most `resends` times. Our
//   REQ asks the kernel for such intervals too, in its local CM response timeout.
// - A REJ that was lost is repeated when its REQ comes again.
// - A message counts only from the address that the connection is with, and a REQ only if its
//   addresses (CMA) are those of its packet: the user trusts remote().
// - A REP for a connection that is unknown is rejected (reason 6) so that its sender need not wait.
//
// Reference for PSNs: each side says in REQ or REP which PSN the *other* is to start with.
//
// Bounds: CmConfig::max_connections, of which max_pending not yet established from outside; every
// message received makes at most four outputs. Communication IDs, PSNs, ports and the CA GUID come
// from a generator seeded by the caller; IDs go up from a random start, so that none comes again
// soon.
//
// Thread: one, the control thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/device.h"
#include "verbs/soft/cm_message.h"
#include "verbs/soft/cm_table.h"
#include "verbs/soft/cm_types.h"

namespace ipoverbs::verbs::soft {

struct CmConfig {
  IpAddress local;             // the underlay address that everything is sent from
  PathMtu max_path_mtu{4096};  // a REQ that asks for more is rejected
  // ... or for more than the way to its sender takes now. May be empty.
  std::function<PathMtu(const IpAddress& remote)> path_mtu_to = {};
  Duration first_resend = std::chrono::milliseconds(100);
  Duration longest_resend = std::chrono::milliseconds(4096);
  unsigned resends = 15;            // of REQ and REP; with the above 43 s in all
  unsigned disconnect_resends = 6;  // of DREQ; 6.3 s, and 6.4 more until it is given up
  Duration time_wait = std::chrono::seconds(2);
  std::size_t max_connections = 4096;
  std::size_t max_pending = 256;
};

// What a connection's queue pair needs to be told, on whichever side.
struct CmQueuePair {
  QpNumber number;
  bool srq = false;
  std::uint8_t rnr_retry = 6;     // what the other side's requests are to keep to
  std::uint8_t ack_timeout = 14;  // ours
};

struct CmConnectRequest {
  IpAddress remote{};  // of the local address's family
  std::uint16_t port = 0;
  PathMtu path_mtu{};
  std::uint8_t retry_count = 6;
  std::uint8_t traffic_class = 0;
  std::span<const std::byte> private_data{};  // at most kConnectPrivateData bytes
};

// --- Outputs ---------------------------------------------------------------------------------

struct CmSend {
  IpAddress destination;
  Mad mad;
};

// INIT -> RTR -> RTS (ibv_modify_qp(3)).
struct CmQueuePairConnect {
  CommId connection;
  QpNumber qp;
  QpNumber remote_qp;
  IpAddress remote;
  Psn receive_psn;  // the first that will come
  Psn send_psn;     // the first to send
  PathMtu path_mtu;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t ack_timeout = 0;
  std::uint8_t traffic_class = 0;
};

// -> ERR.
struct CmQueuePairFlush {
  CommId connection;
  QpNumber qp;
};

// Each connection ends in exactly one of Rejected, Failed and Disconnected, unless the user ends it
// before it is established, or releases it.
enum class CmEventKind : std::uint8_t {
  ConnectRequest,
  Established,
  Rejected,      // of who dialled: `reason`
  Failed,        // before it was established: `error`, or the other side gave up
  Disconnected,  // after it was established
};

struct CmEvent {
  CmEventKind kind{};
  CommId connection{};
  // ConnectRequest: kConnectPrivateData bytes; Established of who dialled: kAcceptPrivateData;
  // Rejected: kRejectPrivateData; otherwise none.
  std::vector<std::byte> private_data{};
  std::optional<RejectReason> reason{};  // when a REJ is the cause
  int error = 0;                         // Failed: ETIMEDOUT, ECONNRESET
  std::uint16_t port = 0;                // ConnectRequest: that is listened on
  Endpoint remote{};                     // ConnectRequest: its port is where it was dialled from
  PathMtu path_mtu{};                    // ConnectRequest
};

using CmOutput = std::variant<CmSend, CmQueuePairConnect, CmQueuePairFlush, CmEvent>;

// What became of a message. Each has a counter.
enum class CmVerdict : std::uint8_t {
  Taken,              // it changed something, or is being answered
  Malformed,          // not a CM message
  Unsupported,        // SIDR, LAP, APR
  Duplicate,          // seen before; answered where there is an answer
  UnknownConnection,  // answered where there is an answer
  WrongAddress,       // from another address than the connection's
  WrongState,         // makes no sense now
  Refused,            // a REQ that was rejected without asking the user
  InvalidField,       // a queue pair number that cannot be
  kCount,
};
[[nodiscard]] const char* to_string(CmVerdict verdict);
using CmCounters = std::array<std::uint64_t, static_cast<std::size_t>(CmVerdict::kCount)>;

class CmMachine {
 public:
  CmMachine(const CmConfig& config, std::uint64_t seed);

  [[nodiscard]] CaGuid ca_guid() const { return ca_guid_; }

  void listen(std::uint16_t port) { listening_.insert(port); }
  void unlisten(std::uint16_t port) { listening_.erase(port); }

  // Sends a REQ. nullopt when there are too many connections.
  [[nodiscard]] std::optional<CommId> connect(const CmConnectRequest& request,
                                              const CmQueuePair& qp, TimePoint now);
  // Answer a ConnectRequest, once; at most kAcceptPrivateData and kRejectPrivateData bytes. False
  // when it is too late: the other side has given up, and Failed says so.
  bool accept(CommId connection, const CmQueuePair& qp, std::span<const std::byte> private_data,
              TimePoint now);
  bool reject(CommId connection, std::span<const std::byte> private_data, TimePoint now);
  // The first message came in on the connection's queue pair: as good as an RTU.
  void data_received(CommId connection);
  // In any state, repeated at will. Disconnected follows if the connection was established; what
  // was not, ends without an event.
  void disconnect(CommId connection, TimePoint now);
  // The user is done with it: no more events. Ends the connection as its state asks for.
  void release(CommId connection, TimePoint now);

  // A MAD that came to QP1 of the local address. Any bytes may come in.
  CmVerdict receive(const IpAddress& source, std::span<const std::byte> mad, TimePoint now);

  // When to call expire() next; nullopt: nothing is waited for.
  [[nodiscard]] std::optional<TimePoint> next_timer() const { return table_.next_due(); }
  void expire(TimePoint now);

  // The oldest output; nullopt: none is left.
  [[nodiscard]] std::optional<CmOutput> take();

  // nullopt: unknown, or gone for good.
  [[nodiscard]] std::optional<CmState> state(CommId connection) const;
  // The far end's address and the port that it is dialled at, or dialled from.
  [[nodiscard]] std::optional<Endpoint> remote(CommId connection) const;
  [[nodiscard]] const CmCounters& counters() const { return counters_; }
  // Remembered connections, those that are over included.
  [[nodiscard]] std::size_t size() const { return table_.size(); }

 private:
  // cm_machine.cc
  CmVerdict dispatch(const IpAddress& source, const CmMessage& message, TimePoint now);
  void send(const IpAddress& destination, const CmMessage& message);
  void event(CmConnection& connection, CmEvent event);
  void send_until_answered(CmConnection& connection, CmMessage message, unsigned resends,
                           TimePoint now);
  void on_due(CmConnection& connection, TimePoint now);
  bool resend(CmConnection& connection, TimePoint now);
  void hold(CmConnection& connection, CmState held, const ReceiptAckMessage& message,
            TimePoint now);
  void connect_queue_pair(const CmConnection& connection);
  [[nodiscard]] TransactionId new_transaction(CommId connection) const;

  // cm_active.cc
  CmVerdict on_reply(const IpAddress& source, const CmMessage& message,
                     const ConnectReplyMessage& rep, TimePoint now);
  [[nodiscard]] ConnectRequestMessage request_message(const CmConnection& connection,
                                                      const CmConnectRequest& request,
                                                      const CmQueuePair& qp) const;
  void send_ready(const CmConnection& connection);
  void drop_stale(CmConnection& old, const IpAddress& source, TimePoint now);

  // cm_passive.cc
  CmVerdict on_request(const IpAddress& source, const CmMessage& message,
                       const ConnectRequestMessage& req, TimePoint now);
  CmVerdict on_duplicate_request(CmConnection& connection);
  [[nodiscard]] std::optional<RejectReason> why_refuse(const IpAddress& source,
                                                       const ConnectRequestMessage& req) const;
  CmVerdict refuse(const IpAddress& source, const CmMessage& message,
                   const ConnectRequestMessage& req, RejectReason reason);
  CmVerdict take_request(const IpAddress& source, const CmMessage& message,
                         const ConnectRequestMessage& req);
  CmVerdict on_ready(const IpAddress& source, const ReadyToUseMessage& rtu);
  void establish(CmConnection& connection);

  // cm_end.cc
  CmVerdict on_reject(const IpAddress& source, const RejectMessage& rej, TimePoint now);
  CmVerdict on_receipt_ack(const IpAddress& source, const ReceiptAckMessage& mra, TimePoint now);
  CmVerdict on_disconnect_request(const IpAddress& source, const CmMessage& message,
                                  const DisconnectRequestMessage& dreq, TimePoint now);
  CmVerdict on_disconnect_reply(const IpAddress& source, const DisconnectReplyMessage& drep,
                                TimePoint now);
  [[nodiscard]] CmConnection* rejected_connection(const RejectMessage& rej) const;
  // What the user, or the time that ran out, ends.
  void end(CmConnection& connection, TimePoint now);
  void send_reject(CmConnection& connection, CmAnswered answered, RejectReason reason,
                   std::span<const std::byte> private_data);
  void send_disconnect(CmConnection& connection, TimePoint now);
  void enter_time_wait(CmConnection& connection, TimePoint now);
  void close(CmConnection& connection);
  void flush_queue_pair(const CmConnection& connection);

  CmConfig config_;
  std::mt19937_64 random_;
  CaGuid ca_guid_;
  std::uint32_t agent_;      // upper half of our transaction IDs
  std::uint16_t next_port_;  // of who dials
  CmTable table_;
  std::set<std::uint16_t> listening_;
  std::deque<CmOutput> outputs_;
  CmCounters counters_{};
};

}  // namespace ipoverbs::verbs::soft
