#include "tests/support/loopback_queues.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace ipoverbs::support {
namespace {

std::size_t total(std::span<const ibv_sge> list) {
  std::size_t bytes = 0;
  for (const ibv_sge& sge : list) bytes += sge.length;
  return bytes;
}

// Whether every byte of the list lies in the region that its key names.
bool registered(const LoopbackContext& device, std::span<const ibv_sge> list) {
  return std::ranges::all_of(list, [&](const ibv_sge& sge) {
    if (sge.length == 0) return true;
    const auto region = device.regions.find(sge.lkey);
    if (region == device.regions.end()) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(region->second.data());
    const std::uint64_t offset = sge.addr - begin;  // huge if the address is below the region
    return offset <= region->second.size() && sge.length <= region->second.size() - offset;
  });
}

std::span<std::byte> memory_of(const ibv_sge& sge) {
  return {reinterpret_cast<std::byte*>(sge.addr), sge.length};
}

// Bytes of `from`, in order, into `to`, which has room for them.
void copy(std::span<const ibv_sge> from, const ibv_sge& to) {
  std::span<std::byte> room = memory_of(to);
  for (const ibv_sge& sge : from) {
    if (sge.length == 0) continue;
    std::memmove(room.data(), memory_of(sge).data(), sge.length);
    room = room.subspan(sge.length);
  }
}

int refuse_receive(const ReceiveQueue& queue, const ibv_recv_wr& request) {
  if (request.num_sge < 0 || request.num_sge > 1) return EINVAL;
  return queue.slots->used == queue.slots->capacity ? ENOMEM : 0;
}

int append_receives(ReceiveQueue& queue, ibv_recv_wr* request, ibv_recv_wr** bad) {
  for (; request != nullptr; request = request->next) {
    if (const int error = refuse_receive(queue, *request); error != 0) {
      *bad = request;
      return error;
    }
    ++queue.slots->used;
    queue.posted.push_back(
        {request->wr_id, request->num_sge == 1 ? request->sg_list[0] : ibv_sge{}});
  }
  return 0;
}

int refuse_send(const LoopbackQp& qp, const ibv_send_wr& request) {
  if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) return EINVAL;
  if (request.num_sge < 0 || static_cast<std::size_t>(request.num_sge) > qp.max_send_sge) {
    return EINVAL;
  }
  if (request.opcode != IBV_WR_SEND && request.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  if ((request.send_flags & IBV_SEND_INLINE) != 0) return EINVAL;
  return qp.send_slots->used == qp.send_slots->capacity ? ENOMEM : 0;
}

// Only wr_id, status and qp_num are true in a failed completion.
ibv_wc failed(std::uint64_t wr_id, ibv_wc_status status, ibv_wc_opcode wrong_opcode) {
  ibv_wc completion{};
  completion.wr_id = wr_id;
  completion.status = status;
  completion.opcode = wrong_opcode;
  completion.byte_len = 0xa5a5a5a5;
  return completion;
}

}  // namespace

void Queues::set_manual(bool manual) {
  manual_ = manual;
  retry();
}

void Queues::retry() {
  if (!manual_) deliver(SIZE_MAX, [](const LoopbackQp&) { return true; });
}

std::size_t Queues::deliver(std::size_t limit, const Choice& chosen) {
  std::size_t carried = 0;
  bool progress = true;
  while (carried < limit && progress) {
    std::vector<LoopbackQp*> waiting;
    std::ranges::copy_if(queue_pairs_, std::back_inserter(waiting),
                         [&](const LoopbackQp* qp) { return !qp->sends.empty() && chosen(*qp); });
    std::ranges::sort(waiting, {}, [](const LoopbackQp* qp) { return qp->sends.front().order; });
    progress = std::ranges::any_of(waiting, [&](LoopbackQp* qp) { return carry_first(*qp); });
    if (progress) ++carried;
  }
  return carried;
}

int Queues::post_send(LoopbackQp& qp, ibv_send_wr* request, ibv_send_wr** bad) {
  int error = 0;
  for (; request != nullptr; request = request->next) {
    error = refuse_send(qp, *request);
    if (error != 0) {
      *bad = request;
      break;
    }
    ++qp.send_slots->used;
    const bool immediate = request->opcode == IBV_WR_SEND_WITH_IMM;
    qp.sends.push_back({.order = next_order_++,
                        .wr_id = request->wr_id,
                        .gather = {request->sg_list, request->sg_list + request->num_sge},
                        .flags = request->send_flags,
                        .has_immediate = immediate,
                        .immediate = immediate ? request->imm_data : 0});
  }
  if (qp.state == IBV_QPS_ERR) to_error(qp);
  kick(qp);
  return error;
}

int Queues::post_receive(LoopbackQp& qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  if (qp.srq != nullptr) {
    *bad = request;
    return EINVAL;
  }
  const int error = append_receives(qp.own, request, bad);
  if (qp.state == IBV_QPS_ERR) to_error(qp);
  if (qp.peer != nullptr) kick(*qp.peer);
  return error;
}

int Queues::post_shared_receive(LoopbackSrq& srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const int error = append_receives(srq.queue, request, bad);
  retry();
  return error;
}

int Queues::poll(LoopbackCq& cq, int count, ibv_wc* completions) {
  int polled = 0;
  for (; polled < count && !cq.entries.empty(); ++polled) {
    const CompletionEntry& entry = cq.entries.front();
    completions[polled] = entry.completion;
    if (entry.slots) entry.slots->used -= entry.freed;
    cq.entries.pop_front();
  }
  return polled;
}

int Queues::arm(LoopbackCq& cq, bool solicited_only) {
  if (!solicited_only) {
    cq.armed = LoopbackCq::Armed::Next;
  } else if (cq.armed == LoopbackCq::Armed::No) {
    cq.armed = LoopbackCq::Armed::Solicited;
  }
  return 0;
}

void Queues::add(LoopbackQp& qp) {
  qp.qp_num = next_number_++;
  qp.state = IBV_QPS_INIT;
  queue_pairs_.insert(&qp);
}

void Queues::remove(LoopbackQp& qp) {
  to_error(qp);
  queue_pairs_.erase(&qp);
  if (qp.device().forget_completions_of_destroyed) {
    for (ibv_cq* raw : {qp.send_cq, qp.recv_cq}) {
      std::erase_if(static_cast<LoopbackCq*>(raw)->entries, [&](const CompletionEntry& entry) {
        const bool ours = entry.completion.qp_num == qp.qp_num;
        if (ours && entry.slots) entry.slots->used -= entry.freed;
        return ours;
      });
    }
  }
  if (qp.peer != nullptr) qp.peer->peer = nullptr;
}

void Queues::pair(LoopbackQp& a, LoopbackQp& b) {
  a.peer = &b;
  b.peer = &a;
}

void Queues::to_rts(LoopbackQp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_RTS;
  if (qp.peer != nullptr) kick(*qp.peer);
}

void Queues::to_error(LoopbackQp& qp) {
  qp.state = IBV_QPS_ERR;
  while (!qp.sends.empty()) finish_send(qp, IBV_WC_WR_FLUSH_ERR);
  while (!qp.own.posted.empty()) {
    finish_receive(qp, qp.own,
                   failed(qp.own.posted.front().wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND), false);
  }
  if (qp.peer != nullptr) kick(*qp.peer);
}

Queues::Route Queues::route(const LoopbackQp& qp) const {
  if (qp.closing || !partitions_.reachable(qp.device().underlay, qp.remote)) return Route::Waiting;
  if (qp.peer == nullptr) return Route::Lost;
  if (qp.peer->state == IBV_QPS_ERR) return Route::Lost;
  return qp.peer->state == IBV_QPS_RTS ? Route::Open : Route::Waiting;
}

void Queues::kick(LoopbackQp& qp) {
  if (manual_) return;
  while (carry_first(qp)) {
  }
}

// Tries the oldest send; true if it is done with, well or badly.
bool Queues::carry_first(LoopbackQp& qp) {
  if (qp.sends.empty() || qp.state != IBV_QPS_RTS || qp.device().removed) return false;
  PostedSend& send = qp.sends.front();
  const std::size_t length = total(send.gather);
  if (!registered(qp.device(), send.gather)) {
    fail(qp, IBV_WC_LOC_PROT_ERR);
    return true;
  }
  if (length > qp.device().capabilities.max_message) {
    fail(qp, IBV_WC_LOC_LEN_ERR);
    return true;
  }
  switch (route(qp)) {
    case Route::Waiting:
      return false;
    case Route::Lost:
      fail(qp, IBV_WC_RETRY_EXC_ERR);
      return true;
    case Route::Open:
      break;
  }
  if (qp.peer->receives().posted.empty()) {
    if (!std::exchange(send.met_rnr, true)) ++rnr_count_;
    return false;
  }
  transfer(qp, *qp.peer, length);
  return true;
}

void Queues::transfer(LoopbackQp& qp, LoopbackQp& peer, std::size_t length) {
  const PostedSend& send = qp.sends.front();
  const PostedReceive& receive = peer.receives().posted.front();
  if (!registered(peer.device(), std::span(&receive.into, 1))) {
    fail_both(qp, IBV_WC_REM_OP_ERR, peer, IBV_WC_LOC_PROT_ERR);
    return;
  }
  if (length > receive.into.length) {
    fail_both(qp, IBV_WC_REM_INV_REQ_ERR, peer, IBV_WC_LOC_LEN_ERR);
    return;
  }
  copy(send.gather, receive.into);
  ibv_wc completion{};
  completion.wr_id = receive.wr_id;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = static_cast<std::uint32_t>(length);
  completion.src_qp = qp.qp_num;
  if (send.has_immediate) {
    completion.imm_data = send.immediate;
    completion.wc_flags = IBV_WC_WITH_IMM;
  }
  finish_receive(peer, peer.receives(), completion, (send.flags & IBV_SEND_SOLICITED) != 0);
  finish_send(qp, IBV_WC_SUCCESS);
}

void Queues::fail(LoopbackQp& qp, ibv_wc_status status) {
  if (!qp.sends.empty()) finish_send(qp, status);
  to_error(qp);
}

bool Queues::in_use(const ibv_cq* cq) const {
  return std::ranges::any_of(
      queue_pairs_, [&](const LoopbackQp* qp) { return qp->send_cq == cq || qp->recv_cq == cq; });
}

bool Queues::in_use(const ibv_srq* srq) const {
  return std::ranges::any_of(queue_pairs_, [&](const LoopbackQp* qp) { return qp->srq == srq; });
}

void Queues::fail_both(LoopbackQp& qp, ibv_wc_status send_status, LoopbackQp& peer,
                       ibv_wc_status receive_status) {
  ReceiveQueue& queue = peer.receives();
  finish_receive(peer, queue, failed(queue.posted.front().wr_id, receive_status, IBV_WC_SEND),
                 false);
  finish_send(qp, send_status);
  qp.state = IBV_QPS_ERR;  // first, or the peer's error would try its next send
  to_error(peer);
  to_error(qp);
}

void Queues::finish_send(LoopbackQp& qp, ibv_wc_status status) {
  const PostedSend send = std::move(qp.sends.front());
  qp.sends.pop_front();
  ++qp.unreported;
  if (status == IBV_WC_SUCCESS && (send.flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc completion{};
  completion.wr_id = send.wr_id;
  completion.opcode = IBV_WC_SEND;
  completion.byte_len = static_cast<std::uint32_t>(total(send.gather));
  if (status != IBV_WC_SUCCESS) completion = failed(send.wr_id, status, IBV_WC_RECV);
  completion.qp_num = qp.qp_num;
  complete(qp.send_cq, {completion, false, qp.send_slots, std::exchange(qp.unreported, 0U)});
}

void Queues::finish_receive(LoopbackQp& qp, ReceiveQueue& queue, ibv_wc completion,
                            bool solicited) {
  queue.posted.pop_front();
  completion.qp_num = qp.qp_num;
  complete(qp.recv_cq, {completion, solicited, queue.slots, 1});
}

void Queues::complete(ibv_cq* raw, CompletionEntry entry) {
  LoopbackCq& cq = *static_cast<LoopbackCq*>(raw);
  if (cq.entries.size() >= cq.depth) {
    ++overrun_count_;
    return;
  }
  const bool wakes = cq.armed == LoopbackCq::Armed::Next ||
                     (cq.armed == LoopbackCq::Armed::Solicited &&
                      (entry.solicited || entry.completion.status != IBV_WC_SUCCESS));
  cq.entries.push_back(std::move(entry));
  if (!wakes) return;
  cq.armed = LoopbackCq::Armed::No;
  cq.channel_event.ring();
}

}  // namespace ipoverbs::support
