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
// - A longer message than the receive: IBV_WC_LOC_LEN_ERR, and IBV_WC_REM_INV_REQ_ERR to the
// sender.
// - No receive: the message waits (endless RNR retries) and rnr_count() counts it once.
// - Posting to a queue pair before it can send: EINVAL; with too many SGEs, inline data or another
//   opcode than SEND and SEND with immediate: EINVAL; a full queue: ENOMEM. In error: flushed.
// - Sending to a queue pair in error whose end has not said that it leaves: IBV_WC_RETRY_EXC_ERR at
//   once.
// - In a failed completion only wr_id, status and qp_num are true; the opcode is deliberately
// wrong.
// - More completions than a completion queue holds are lost and counted by overrun_count().
// - Arming gives one event for the next completion added; completions already there give none.
// - Fields of the ibv_ structures that the inline verbs don't use are filled with 0xa5.
//
// The connection manager behaves as librdmacm does: who dialled can send once its Established was
// handed out (before, what the acceptor sends waits), the acceptor from accept() on; Disconnected
// puts the queue pair into error and answers; who disconnects gets its own Disconnected when the
// other side has answered. An accept() with too much private data has rejected the other side.
// Who listens is told of an attempt that was given up by Failed, who dialled by Rejected.
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
  // Destroying a queue pair takes its completions out of the completion queue (mlx5 does), instead
  // of leaving them to be polled (rdma_rxe does).
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

  // Manual delivery: carries up to `n` of the sends that can be carried, oldest first over all
  // queue pairs, those that fail included; returns how many.
  std::size_t deliver(std::size_t n = kAll);

  // Messages that found no receive, each once.
  [[nodiscard]] std::uint64_t rnr_count() const;
  // Completions lost in full completion queues.
  [[nodiscard]] std::uint64_t overrun_count() const;

 private:
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace ipoverbs::support
