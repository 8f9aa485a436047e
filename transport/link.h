// Link: one session as its worker sees it.
//
// Life, driven by the control thread through the worker's commands:
//
//   attach    receives; sends nothing. The far end may send before our own connection manager has
//   said
//             "established".
//   activate  the hello of the far end is known: sends too.
//   detach    posts nothing any more; the worker answers, and the queue pair may be destroyed.
//   forget    the queue pair is destroyed: memory that it may have read is free again.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "transport/counters.h"
#include "transport/credits.h"
#include "transport/frame_queue.h"
#include "transport/hello.h"
#include "transport/route_table.h"
#include "transport/send_queue.h"

namespace ipoverbs::transport {

// What the control thread may read of a link while its worker runs.
struct LinkGauges {
  Gauge send_credits, receive_window, queued_packets;
};

struct LinkConfig {
  LinkId id;
  PeerIndex peer = 0;
  ibv_qp* queue_pair = nullptr;
  SendQueue::Limits limits;
  std::shared_ptr<LinkGauges> gauges;
};

// What the links of a worker share; it outlives them.
struct LinkResources {
  SlabPool& slabs;
  CreditPool& credits;
  DoorbellSizes& doorbells;
};

class Link {
 public:
  // `own_pool`: where there is no shared receive queue, the credits of this link's own receives.
  Link(const LinkConfig& config, const LinkResources& resources,
       std::unique_ptr<CreditPool> own_pool, TimePoint now)
      : id(config.id),
        peer(config.peer),
        queue_pair(config.queue_pair),
        pool(own_pool ? *own_pool : resources.credits),
        sends(config.queue_pair, config.id, config.limits, resources.slabs, resources.doorbells),
        grantor(pool),
        waiting(resources.slabs),
        last_received(now),
        last_sent(now),
        gauges(config.gauges),
        own_pool_(std::move(own_pool)) {}

  // `listen_first`: sends nothing before it has received something. On iWARP the side that dialled
  // must be the first to send (RFC 5044, section 7.1.3: the responder's FPDUs wait for the
  // initiator's).
  void activate(const Hello& hello, bool listen_first, TimePoint now) {
    sends.set_max_message(hello.max_message);
    send_credits += hello.credits;
    mtu = hello.mtu;
    capabilities = hello.capabilities;
    last_received = now;
    waits_for_first = listen_first && !received_any;
    active = true;
  }

  // Whether a message with packets may be begun, as far as the far end is concerned.
  [[nodiscard]] bool may_open() const noexcept { return send_credits > 0 && !waits_for_first; }
  // Whether a packet of any size would go out now.
  [[nodiscard]] bool can_send() const noexcept {
    return active && may_open() && waiting.empty() && sends.has_room();
  }

  const LinkId id;
  const PeerIndex peer;
  ibv_qp* const queue_pair;
  CreditPool& pool;
  SendQueue sends;
  Grantor grantor;
  ControlAllowance control_allowance;
  SendQueue::Totals accounted;  // what the worker's counters have of sends.totals()
  FrameQueue waiting;
  std::uint32_t send_credits = 0;  // messages that the far end has granted and we have not sent
  IpMtu mtu;                       // the far end's
  std::uint32_t capabilities = 0;  // the far end's, bits of Capability, by its hello
  std::uint32_t not_withdrawn = ~std::uint32_t{0};  // by the far end since; it still delivers all
  std::uint32_t told_withdrawn = 0;                 // what the far end knows that we have withdrawn
  bool active = false;
  bool waits_for_first = false;
  bool received_any = false;
  bool detached = false;
  bool reported = false;  // the control thread has been told that it failed
  TimePoint last_received;
  TimePoint last_sent;
  std::shared_ptr<LinkGauges> gauges;

 private:
  std::unique_ptr<CreditPool> own_pool_;
};

}  // namespace ipoverbs::transport
