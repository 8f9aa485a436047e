#include "verbs/soft/queue_pair.h"

#include <cerrno>

#include "verbs/soft/ecn.h"

namespace ipoverbs::verbs::soft {

QueuePair::QueuePair(const QueuePairSetup& setup, CompletionRing& completions,
                     const MemoryTable& memory)
    : ibv_qp{},
      memory_(memory),
      completions_(completions),
      sends_(setup.send_depth, setup.send_sge, setup.max_inline, setup.signal_all),
      own_receives_(
          setup.shared != nullptr
              ? std::nullopt
              : std::optional<ReceiveQueue>(std::in_place, setup.receive_depth, setup.receive_sge)),
      requester_(sends_, completions, setup.number),
      responder_(setup.shared != nullptr ? *setup.shared : *own_receives_, completions,
                 setup.number) {
  context = setup.context;
  send_cq = recv_cq = setup.cq;
  srq = setup.srq;
  qp_num = setup.number.value();
  qp_type = IBV_QPT_RC;
  state = IBV_QPS_INIT;
}

void QueuePair::connect_receive(const Path& path, const ResponderConfig& config) {
  if (state != IBV_QPS_INIT) return;
  path_ = path;
  inbound_ = Inbound(path.local().address, path.remote().address);
  responder_.connect(config);
  state = IBV_QPS_RTR;
}

void QueuePair::connect_send(const RequesterConfig& config) {
  if (state != IBV_QPS_RTR) return;
  requester_.connect(config);
  state = IBV_QPS_RTS;
}

void QueuePair::to_error() noexcept {
  if (state == IBV_QPS_ERR) return;
  fail(IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
}

void QueuePair::fail(ibv_wc_status send, ibv_wc_status receive) noexcept {
  state = IBV_QPS_ERR;
  requester_.flush(send);
  responder_.flush(receive);
  flush_receives();
}

void QueuePair::flush_receives() noexcept {
  if (!own_receives_) return;
  for (; !own_receives_->empty(); own_receives_->pop()) {
    ibv_wc completion{};
    completion.wr_id = own_receives_->front().id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.opcode = IBV_WC_RECV;
    completion.qp_num = qp_num;
    completions_.push(completion, true);
  }
}

int QueuePair::post_send(ibv_send_wr* list, ibv_send_wr** bad) noexcept {
  for (; list != nullptr; list = list->next) {
    const bool allowed = state == IBV_QPS_RTS || state == IBV_QPS_ERR;
    const int error = allowed ? sends_.post(*list, memory_) : EINVAL;
    if (error != 0) {
      *bad = list;
      return error;
    }
    if (state == IBV_QPS_ERR) requester_.flush(IBV_WC_WR_FLUSH_ERR);
  }
  return 0;
}

int QueuePair::post_recv(ibv_recv_wr* list, ibv_recv_wr** bad) noexcept {
  for (; list != nullptr; list = list->next) {
    const int error = own_receives_ ? own_receives_->post(*list, memory_) : EINVAL;
    if (error != 0) {
      *bad = list;
      return error;
    }
    if (state == IBV_QPS_ERR) flush_receives();
  }
  return 0;
}

bool QueuePair::expects(Opcode opcode) const noexcept {
  using enum Opcode;
  if (opcode == Acknowledge || opcode == CongestionNotification) return state == IBV_QPS_RTS;
  const bool answer =
      (opcode >= ReadResponseFirst && opcode <= ReadResponseOnly) || opcode == AtomicAcknowledge;
  return !answer && opcode != UdSendOnly && opcode != UdSendOnlyImm;
}

std::optional<Reject> QueuePair::receive(const Packet& packet, const Received& received,
                                         std::size_t i, TimePoint now) noexcept {
  if (!connected()) return Reject::WrongState;
  if (!expects(packet.opcode())) return Reject::WrongTransport;
  if (received.source.address != path_.remote().address) return Reject::WrongSource;
  // The high bit tells full from limited membership; two limited members may not talk, which
  // cannot be, as the default partition's full member is what this device is.
  if (((packet.bth.partition.value() ^ kDefaultPartition) & 0x7fffU) != 0) {
    return Reject::BadPartition;
  }
  if (!inbound_.intact(received.datagram(i), received.source.port, static_cast<std::uint16_t>(i),
                       now)) {
    return Reject::BadIcrc;
  }
  take(packet, ecn_of(received.traffic_class) == Ecn::Congested, now);
  return std::nullopt;
}

void QueuePair::take(const Packet& packet, bool congested, TimePoint now) noexcept {
  requester_.on_sign_of_life(now);
  switch (packet.opcode()) {
    case Opcode::Acknowledge:
      if (const auto failure = requester_.on_answer(packet, now)) {
        cause_ = *failure;
        fail(*failure, IBV_WC_WR_FLUSH_ERR);
      }
      break;
    case Opcode::CongestionNotification:
      requester_.on_congestion();
      break;
    default:
      if (congested) responder_.on_congestion(now);
      if (const auto failure = responder_.on_request(packet)) {
        cause_ = *failure == IBV_WC_WR_FLUSH_ERR ? IBV_WC_LOC_QP_OP_ERR : *failure;
        fail(IBV_WC_WR_FLUSH_ERR, *failure);
      }
  }
}

void QueuePair::transmit(TimePoint now, Burst& burst) noexcept {
  // Without a requester there is nothing to wait for.
  if (state != IBV_QPS_RTS) return responder_.transmit(now, path_, burst, true);
  const std::size_t before = burst.segments().size();
  if (const auto failure = requester_.transmit(now, path_, burst)) {
    cause_ = *failure;
    fail(*failure, IBV_WC_WR_FLUSH_ERR);
  }
  // Last, for it is the shortest: a run of segments may end with a shorter one.
  responder_.transmit(now, path_, burst, burst.segments().size() > before);
}

void QueuePair::on_timer(TimePoint now) noexcept {
  if (state != IBV_QPS_RTS) return;
  if (const auto failure = requester_.on_timer(now)) {
    cause_ = *failure;
    fail(*failure, IBV_WC_WR_FLUSH_ERR);
  }
}

std::optional<TimePoint> QueuePair::deadline() const noexcept {
  if (state != IBV_QPS_RTS) return std::nullopt;
  const auto send = requester_.deadline();
  const auto answer = responder_.deadline();
  if (!send || (answer && *answer < *send)) return answer;
  return send;
}

}  // namespace ipoverbs::verbs::soft
