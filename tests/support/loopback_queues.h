// The data path of the loopback network: queues, and messages carried from one to the other.
//
// Nothing in here locks: who calls holds the network's mutex. The ibv_ structures are the first
// base of ours, so that an operation of the context finds its object by a static_cast.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/ip.h"
#include "verbs/device.h"

namespace ipoverbs::support {

struct Fabric;

// Which pairs of underlay addresses cannot reach each other.
class Partitions {
 public:
  void cut(const IpAddress& a, const IpAddress& b) { cuts_.insert(std::minmax(a, b)); }
  void heal(const IpAddress& a, const IpAddress& b) { cuts_.erase(std::minmax(a, b)); }
  [[nodiscard]] bool reachable(const IpAddress& a, const IpAddress& b) const {
    return !cuts_.contains(std::minmax(a, b));
  }

 private:
  std::set<std::pair<IpAddress, IpAddress>> cuts_;
};

// A public structure of the verbs with every byte 0xa5, so that a field nobody may use is noticed.
template <class T>
struct Poisoned : T {
  Poisoned() noexcept { std::memset(static_cast<T*>(this), 0xa5, sizeof(T)); }
};

struct LoopbackContext : Poisoned<ibv_context> {
  Fabric* fabric = nullptr;
  IpAddress underlay;
  verbs::Capabilities capabilities;
  bool forget_completions_of_destroyed = false;
  bool removed = false;                                   // carries nothing any more
  std::map<std::uint32_t, std::span<std::byte>> regions;  // by local key
};

// How many work requests a queue holds; a completion gives back, when polled, what it covers.
struct Slots {
  std::uint32_t capacity = 0;
  std::uint32_t used = 0;
};

struct CompletionEntry {
  ibv_wc completion{};
  bool solicited = false;
  std::shared_ptr<Slots> slots;  // null if the queue's destruction gave them back
  std::uint32_t freed = 0;
};

struct LoopbackCq : Poisoned<ibv_cq> {
  enum class Armed : std::uint8_t { No, Solicited, Next };
  Armed armed = Armed::No;
  std::uint32_t depth = 0;
  std::deque<CompletionEntry> entries;
  EventFd channel_event;
};

struct PostedReceive {
  std::uint64_t wr_id = 0;
  ibv_sge into{};  // receives have one SGE each, as verbs/device.h has it
};

struct ReceiveQueue {
  std::shared_ptr<Slots> slots = std::make_shared<Slots>();
  std::deque<PostedReceive> posted;
};

struct LoopbackSrq : Poisoned<ibv_srq> {
  ReceiveQueue queue;
};

struct PostedSend {
  std::uint64_t order = 0;  // of posting, over all queue pairs
  std::uint64_t wr_id = 0;
  std::vector<ibv_sge> gather;
  unsigned int flags = 0;
  bool has_immediate = false;
  __be32 immediate = 0;
  bool met_rnr = false;
};

// ibv_qp::state is the queue pair's state.
struct LoopbackQp : Poisoned<ibv_qp> {
  std::shared_ptr<Slots> send_slots = std::make_shared<Slots>();
  std::size_t max_send_sge = 1;
  std::deque<PostedSend> sends;
  std::uint32_t unreported = 0;  // slots of unsignalled sends carried since the last completion
  ReceiveQueue own;
  LoopbackQp* peer = nullptr;
  IpAddress remote;
  bool closing = false;  // the other side has said that it leaves: what is sent waits for the flush

  [[nodiscard]] LoopbackContext& device() const { return *static_cast<LoopbackContext*>(context); }
  [[nodiscard]] ReceiveQueue& receives() {
    return srq != nullptr ? static_cast<LoopbackSrq*>(srq)->queue : own;
  }
};

class Queues {
 public:
  explicit Queues(const Partitions& partitions) : partitions_(partitions) {}

  void set_manual(bool manual);
  using Choice = std::function<bool(const LoopbackQp&)>;
  // Carries up to `limit` sends of the queue pairs that `chosen` says yes to, oldest first.
  std::size_t deliver(std::size_t limit, const Choice& chosen);
  [[nodiscard]] std::uint64_t rnr_count() const { return rnr_count_; }
  [[nodiscard]] std::uint64_t overrun_count() const { return overrun_count_; }

  // What the context's operations do; errors are errno values, as theirs.
  int post_send(LoopbackQp& qp, ibv_send_wr* request, ibv_send_wr** bad);
  int post_receive(LoopbackQp& qp, ibv_recv_wr* request, ibv_recv_wr** bad);
  int post_shared_receive(LoopbackSrq& srq, ibv_recv_wr* request, ibv_recv_wr** bad);
  static int poll(LoopbackCq& cq, int count, ibv_wc* completions);
  static int arm(LoopbackCq& cq, bool solicited_only);

  // Gives the queue pair a number and the state INIT.
  void add(LoopbackQp& qp);
  // Flushes it and forgets it; its peer no longer has one.
  void remove(LoopbackQp& qp);
  // Names each the other's peer; the states stay.
  static void pair(LoopbackQp& a, LoopbackQp& b);
  void to_rts(LoopbackQp& qp);
  // Flushes sends and own receives, in order; shared receives stay.
  void to_error(LoopbackQp& qp);
  // The oldest send, if there is one, fails with `status`, and the queue pair is in error.
  void fail(LoopbackQp& qp, ibv_wc_status status);
  // Whether a queue pair uses the completion queue or shared receive queue.
  [[nodiscard]] bool in_use(const ibv_cq* cq) const;
  [[nodiscard]] bool in_use(const ibv_srq* srq) const;
  // Tries again what waited, after a change of reachability.
  void retry();

 private:
  enum class Route : std::uint8_t { Open, Waiting, Lost };
  [[nodiscard]] Route route(const LoopbackQp& qp) const;
  void kick(LoopbackQp& qp);
  bool carry_first(LoopbackQp& qp);
  void transfer(LoopbackQp& qp, LoopbackQp& peer, std::size_t length);
  void fail_both(LoopbackQp& qp, ibv_wc_status send_status, LoopbackQp& peer,
                 ibv_wc_status receive_status);
  void finish_send(LoopbackQp& qp, ibv_wc_status status);
  void finish_receive(LoopbackQp& qp, ReceiveQueue& queue, ibv_wc completion, bool solicited);
  void complete(ibv_cq* cq, CompletionEntry entry);

  const Partitions& partitions_;
  bool manual_ = false;
  std::set<LoopbackQp*> queue_pairs_;
  std::uint32_t next_number_ = 0x11;
  std::uint64_t next_order_ = 0;
  std::uint64_t rnr_count_ = 0;
  std::uint64_t overrun_count_ = 0;
};

}  // namespace ipoverbs::support
