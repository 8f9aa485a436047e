// LoopbackNetwork: verbs devices in memory, for tests of what stands on verbs::Device.
//
// Theory of operation. A network holds devices, each at an underlay address. A send is carried by
// copying its gather list into the next receive of the peer's queue pair, under the one mutex of
// the network, by whichever thread made it possible: who posted the send, who posted the receive it
// waited for, or who called deliver(). There are no threads, timers, sleeps or randomness in here:
// a test that drives everything from one thread is repeatable to the last event, and workers in
// threads of their own may post and poll at the same time.
//
// It is strict where hardware is:
// - A send or receive slot is free again when the completion that covers it has been polled; for
//   unsignalled sends that is a later completion's. Only unsignalled sends: the queue fills up.
// - Memory is read and written when the message is carried, not when it is posted, and must be
//   registered then: IBV_WC_LOC_PROT_ERR, and the queue pair is in error. A receive's unregistered
//   memory gives its sender IBV_WC_REM_OP_ERR.
// - A message longer than the receive: IBV_WC_LOC_LEN_ERR, its sender gets IBV_WC_REM_INV_REQ_ERR.
// - No receive: the message waits (endless RNR retries) and rnr_count() counts it once.
// - Posting to a queue pair before it can send: EINVAL; with too many SGEs, inline data or another
//   opcode than SEND and SEND with immediate: EINVAL; a full queue: ENOMEM. In error: flushed.
// - Sending to a queue pair in error whose end has not said that it leaves: IBV_WC_RETRY_EXC_ERR at
//   once.
// - In a failed completion only wr_id, status and qp_num are true (ibv_poll_cq(3)); the opcode is
//   wrong on purpose.
// - More completions than a completion queue holds are lost and counted by overrun_count().
// - Arming gives one event for the next completion added; completions already there give none.
// - Fields of the ibv_ structures that the inline verbs don't use are filled with 0xa5.
//
// The connection manager behaves as librdmacm does: who dialled can send once its Established was
// handed out (before, what the acceptor sends waits), the acceptor from accept() on; Disconnected
// puts the queue pair into error and answers; who disconnects gets its own Disconnected when the
// other side has answered; destroying a Connection says REJ before Established was handed out or
// heard of, DREQ after; the other side, dialled or dialling, learns of a REJ by Rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/ip.h"
#include "verbs/device.h"

namespace ipoverbs::support {

struct Fabric;

// A capable device: shared receive queue, 16 SGEs, path MTU 4096, messages to 2^30 bytes.
[[nodiscard]] verbs::Capabilities loopback_capabilities();

struct LoopbackOptions {
  // What the device can do, and enforces. max_srq_wr = 0: no shared receive queue.
  verbs::Capabilities capabilities = loopback_capabilities();
  // Dialling an address that no device has: Failed at once, instead of nothing for ever.
  bool fail_unknown_at_once = false;
  // Destroying a queue pair takes its completions out of the completion queue (as rdma-core's
  // providers/mlx5/cq.c does, mlx5_cq_clean), instead of leaving them to be polled.
  bool forget_completions_of_destroyed = false;
};

// Fabric-wide switches and counters are callable from any thread. The network outlives its devices.
class LoopbackNetwork {
 public:
  enum class Delivery : std::uint8_t {
    Automatic,  // a message is carried as soon as it can be
    Manual,     // a message is carried by deliver() only
  };
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  explicit LoopbackNetwork(Delivery delivery = Delivery::Automatic);
  ~LoopbackNetwork();
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  // A new incarnation of the device at `underlay`. It outlives everything made from it (asserted).
  [[nodiscard]] std::unique_ptr<verbs::Device> open(IpAddress underlay,
                                                    LoopbackOptions options = {});

  // Carries up to `n` of the sends that can be carried, oldest first over all queue pairs, those
  // that fail included; returns how many. With automatic delivery there are none left to carry.
  std::size_t deliver(std::size_t n = kAll);
  // The same for what is sent from one address to another.
  std::size_t deliver_between(const IpAddress& from, const IpAddress& to, std::size_t n = kAll);
  void set_delivery(Delivery delivery);

  // Messages that found no receive, each once.
  [[nodiscard]] std::uint64_t rnr_count() const;
  // Receives that wait where the queue pair takes them from. A programmer's error if there is no
  // such queue pair.
  [[nodiscard]] std::size_t posted_receives(verbs::QpNumber number) const;
  // Completions lost in full completion queues.
  [[nodiscard]] std::uint64_t overrun_count() const;

  // The two cannot reach each other until healed: dialling hangs, established connections fall
  // silent (sends are neither carried nor completed), and what the connection managers have to say
  // arrives after the healing.
  void partition(const IpAddress& a, const IpAddress& b);
  void heal(const IpAddress& a, const IpAddress& b);

  // The devices open at `underlay` get DeviceRemoved instead of whatever was pending, carry nothing
  // any more and refuse with ENODEV; their peers get Disconnected or Rejected. No completion tells.
  // open() at the address works again at once.
  void remove_device(const IpAddress& underlay);

  // The `nth` creation from now on (1: the next) of memory region, completion queue, shared receive
  // queue or queue pair, anywhere in the network, throws SystemError(ENOMEM). 0: none does.
  void fail_creation(std::uint64_t nth);
  // Creations that succeeded so far: how far a test that fails each one has to count.
  [[nodiscard]] std::uint64_t creation_count() const;
  // How many memory regions, completion queues, shared receive queues, queue pairs and Connections
  // there are.
  [[nodiscard]] std::size_t live_objects() const;
  [[nodiscard]] std::size_t live_devices() const;

  // Queue pairs of connections from `local` to `remote`, oldest first.
  [[nodiscard]] std::vector<verbs::QpNumber> queue_pairs(const IpAddress& local,
                                                         const IpAddress& remote) const;
  // The queue pair's oldest send completes with `status` and the queue pair is in error; the
  // connection managers know nothing of it. A programmer's error if there is no such queue pair.
  void break_queue_pair(verbs::QpNumber number, ibv_wc_status status = IBV_WC_RETRY_EXC_ERR);

  // Queues an event that the network has no cause for of itself: PortDown, PortActive at the
  // devices of an address; AddressChanged, QueuePairFailed (which puts it into error) at a queue
  // pair's connection, which must exist.
  void report(const IpAddress& underlay, verbs::EventKind kind, const std::string& detail);
  void report(verbs::QpNumber number, verbs::EventKind kind, const std::string& detail);

 private:
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace ipoverbs::support
