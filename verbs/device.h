// The narrow seam of the control path: what the transport needs of an RDMA device that is not an
// inline function of <infiniband/verbs.h>.
//
// Theory of operation. Posting and polling go through the inline verbs (ibv_post_send,
// ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq, ibv_req_notify_cq), which call through
// context->ops, so that one data path drives rdma-core's devices and the software device alike.
// Everything else (opening, registering, creating queues, connecting, waiting) is virtual here,
// because those library functions must never see an object that libibverbs did not make. Two
// implementations: verbs/rdma/ over libibverbs and librdmacm, verbs/soft/ in this process on a UDP
// socket.
//
// A Device is one incarnation: when DeviceRemoved is reported, everything made from it is destroyed
// and then the Device itself; a later open() finds the device that came back.
//
// Connections. Who dials:                          Who listens:
//   dial() ->                                        listen() ->
//   RouteResolved: create_queue_pair, post           ConnectRequest (owns a new Connection):
//     receives if there is no SRQ, connect()           create_queue_pair, post receives if there is
//   Established | Rejected | Failed                    no SRQ, accept() or reject()
//                                                    Established | Rejected | Failed
// then, on both sides, Disconnected at most once. Data may be received before Established: the
// completion queue, not the event, says so. There is no timer of the caller's in here: who wants to
// give an attempt up destroys the Connection, in any state, which sends what the protocol asks for
// (REJ, DREQ) and never blocks for long.
//
// Threads. One control thread calls everything here except where a function says otherwise. The raw
// queues are used by the worker that owns them, at the same time. Destroying a Connection while its
// completion queue is being polled is allowed once nobody posts to its queue pair any more;
// completions of a destroyed queue pair may still be polled, so a caller tells sessions apart by
// qp_num and by wr_id.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/epoll.h"
#include "core/ip.h"
#include "core/log.h"
#include "core/strong.h"

namespace ipoverbs::verbs {

using QpNumber = Strong<struct QpNumberTag, std::uint32_t>;  // 24 bits
using LocalKey = Strong<struct LocalKeyTag, std::uint32_t>;
using PathMtu = Strong<struct PathMtuTag, std::uint32_t>;  // bytes: 256, 512, 1024, 2048 or 4096

// User bytes of private data in the connection manager's messages over RDMA_PS_TCP
// (rdma_connect(3), rdma_accept(3), rdma_reject(3)). Received private data is padded with zeros to
// the field's full size.
inline constexpr std::size_t kConnectPrivateData = 56;
inline constexpr std::size_t kAcceptPrivateData = 196;
inline constexpr std::size_t kRejectPrivateData = 148;

// What a device can do, probed once at open and constant from then on.
struct Capabilities {
  std::string device;           // "rxe0", "mlx5_0"; the software device is "soft"
  std::string provider;         // "rdma-core" or "soft"
  std::string link;             // "InfiniBand", "RoCE", "iWARP"
  std::uint8_t port = 1;        // port number, from 1
  std::uint32_t max_qp_wr = 0;  // work requests in a send or receive queue
  std::uint32_t max_cqe = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_srq_wr = 0;   // 0: no shared receive queue
  std::uint32_t max_srq_sge = 0;  // of a shared receive
  std::uint64_t max_message = 0;  // bytes of one SEND
  PathMtu active_mtu;             // of the port, now
  [[nodiscard]] bool has_srq() const { return max_srq_wr > 0; }
};

// Registered memory; deregistered on destruction. The memory itself belongs to the caller and
// outlives it.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  [[nodiscard]] virtual LocalKey local_key() const = 0;
};

// A completion queue with its completion channel.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  [[nodiscard]] virtual ibv_cq* raw() const = 0;
  // Nonblocking; becomes readable when something is to be done after ibv_req_notify_cq (for the
  // software device also when a timer is due: poll then). Level-triggered until consume_events().
  [[nodiscard]] virtual int fd() const = 0;
  // Has `epoll` report `tag` when fd() would be readable, without the detour over fd() if there is
  // a way. The queue outlives what is done with `epoll`. Throws SystemError.
  virtual void watch(Epoll& epoll, std::uint32_t tag) const { epoll.add(fd(), tag); }
  // Worker: takes and acknowledges what made fd() readable. Never blocks. After it the queue must
  // be armed again (ibv_req_notify_cq) and polled once more before sleeping, or a completion can be
  // missed.
  virtual void consume_events() noexcept = 0;
};

class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  [[nodiscard]] virtual ibv_srq* raw() const = 0;
};

// How a queue pair is to be made. The queues named here outlive the Connection.
struct QueuePairConfig {
  CompletionQueue* completion_queue = nullptr;         // of sends and receives alike
  SharedReceiveQueue* shared_receive_queue = nullptr;  // null: receives are the queue pair's own
  std::uint32_t send_depth = 0;                        // work requests
  std::uint32_t receive_depth = 0;  // work requests; ignored with a shared receive queue
  std::uint32_t send_sge = 1;
};

// What is set on every connection (ranges: rdma_connect(3), ibv_modify_qp(3)).
struct ConnectionTimers {
  std::uint8_t retry_count = 6;  // 0..6: rdma_rxe takes 7 as endless
  // 0..7, 7 endless: with min_rnr_timer six tries are over in 70 us, and a peer whose process
  // stands still uses up the receives for Control messages in seconds. Who is dead, dead_time says.
  std::uint8_t rnr_retry = 7;
  // 4.096 us * 2^n; 17: 537 ms. With seven tries in all a peer may stand still for 3.7 s, which a
  // busy virtual machine does, before its connection is given up.
  std::uint8_t ack_timeout = 17;
  std::uint8_t min_rnr_timer = 1;  // code of ibv_modify_qp(3); 1: 0.01 ms. 0 would be 655 ms
};

// Quality of service and partition, where the fabric has them.
struct PathOptions {
  std::optional<std::uint8_t> traffic_class;  // RDMA_OPTION_ID_TOS: RoCE DSCP << 2, or service type
  std::optional<std::uint8_t> service_level;  // InfiniBand, 0..15
  std::optional<std::uint16_t> pkey;          // InfiniBand partition key
};

// The far end of an attempt: an IP address of the underlay, or a GID (AF_IB, InfiniBand without
// IPoIB).
struct RemoteAddress {
  Endpoint endpoint;    // with the listener's port
  bool by_gid = false;  // endpoint.address is a GID in IPv6 form
};

struct QueuePairAttributes {
  QpNumber number;
  PathMtu path_mtu;
  std::uint8_t ack_timeout = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t gid_index = 0;  // in the port's GID table, of the local end
};

// One reliable connection: its connection manager identity and, once created, its queue pair.
class Connection {
 public:
  virtual ~Connection() = default;
  // Creates the queue pair; after RouteResolved or in answer to ConnectRequest. Throws SystemError,
  // which names the limit on locked memory where that may be why.
  virtual void create_queue_pair(const QueuePairConfig& config) = 0;
  // Null before create_queue_pair. Worker: posts to it.
  [[nodiscard]] virtual ibv_qp* queue_pair() const = 0;
  // At most kConnectPrivateData / kAcceptPrivateData / kRejectPrivateData bytes, copied. Throw
  // SystemError.
  virtual void connect(std::span<const std::byte> private_data) = 0;
  virtual void accept(std::span<const std::byte> private_data) = 0;
  virtual void reject(std::span<const std::byte> private_data) = 0;
  // Starts to disconnect; flushes the queue pair. Harmless in any state and when repeated.
  virtual void disconnect() noexcept = 0;
  // The far end's address; its port is the one that it connected from where it dialled.
  [[nodiscard]] virtual Endpoint remote() const = 0;
  // As the device reports them (ibv_query_qp). Throws SystemError.
  [[nodiscard]] virtual QueuePairAttributes attributes() const = 0;
};

enum class EventKind : std::uint8_t {
  RouteResolved,   // connection
  ConnectRequest,  // incoming, private_data
  Established,     // connection, private_data (who dialled)
  Rejected,        // connection, private_data, detail; its queue pair is of no more use
  Failed,          // connection, detail: resolving or connecting failed, or the device reported the
                   // connection as unreachable
  Disconnected,    // connection: the other side is gone or has said so. The implementation has
                   // answered.
  AddressChanged,  // connection: the underlay's hardware address changed; connect anew
  QueuePairFailed,  // connection: asynchronous QP_FATAL and its kin
  PortDown,         // device-wide: detail
  PortActive,       // device-wide
  DeviceRemoved,    // device-wide: destroy everything that was made from the Device, and it
};
[[nodiscard]] const char* to_string(EventKind kind);

// Valid during on_event() only.
struct Event {
  EventKind kind{};
  Connection* connection = nullptr;
  std::unique_ptr<Connection> incoming;     // take it to keep it; dropped, it is rejected
  std::span<const std::byte> private_data;  // padded with zeros
  std::string detail;                       // why, in words, for the log
  int status = 0;                           // the event's status: negative errno or reject reason
};

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  // May destroy any Connection, the event's own included, but not the Device.
  virtual void on_event(Event& event) = 0;
};

struct CounterValue {
  std::string_view name;  // static storage
  std::uint64_t value = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const Capabilities& capabilities() const = 0;
  // What it counts about itself since it was opened; empty where the kernel or nobody does
  // (rdma-statistic(8)).
  [[nodiscard]] virtual std::vector<CounterValue> counters() const { return {}; }

  // Any thread: a worker's receives grow with its sessions. `memory` must stay mapped while the
  // region lives. Throws SystemError; where the limit on locked
  // memory is what failed it, here and in the two below, UsageError with RLIMIT_MEMLOCK's present
  // value and the need.
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> register_memory(
      std::span<std::byte> memory) = 0;
  // `depth` in completions. One completion queue is polled by one worker.
  [[nodiscard]] virtual std::unique_ptr<CompletionQueue> create_completion_queue(
      std::uint32_t depth) = 0;
  // `depth` in receives, one SGE each. Only if capabilities().has_srq().
  [[nodiscard]] virtual std::unique_ptr<SharedReceiveQueue> create_shared_receive_queue(
      std::uint32_t depth) = 0;

  // Listens on the local underlay address and `port` (host order). Throws SystemError.
  virtual void listen(std::uint16_t port) = 0;
  // Starts to resolve `remote` from the local underlay address. Throws SystemError.
  [[nodiscard]] virtual std::unique_ptr<Connection> dial(const RemoteAddress& remote,
                                                         const PathOptions& path) = 0;

  // Readable when process_events() has something to do.
  [[nodiscard]] virtual int event_fd() const = 0;
  // Hands every pending event to `handler`, each acknowledged before its handler runs. Never
  // blocks. Returns how many there were.
  virtual int process_events(EventHandler& handler) = 0;
};

}  // namespace ipoverbs::verbs
