// The connection manager as the side that dials.

#include <algorithm>
#include <bit>
#include <cassert>

#include "verbs/soft/cm_machine.h"
#include "verbs/soft/cma_header.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr std::uint16_t kPermissiveLid = 0xffff;  // as rdma_cm does for a path that is routed
constexpr std::uint8_t kHopLimit = 64;
// 268 ms: what the kernel then waits before it sends a REP or a DREQ again.
constexpr std::uint8_t kResponseTimeout = 16;
constexpr std::uint8_t kMaxRetries = 15;

std::uint8_t code_of(PathMtu mtu) {
  return static_cast<std::uint8_t>(std::countr_zero(mtu.value()) - 7);
}
static_assert(path_mtu_of_code(1) == PathMtu(256));

}  // namespace

ConnectRequestMessage CmMachine::request_message(const CmConnection& connection,
                                                 const CmConnectRequest& request,
                                                 const CmQueuePair& qp) const {
  ConnectRequestMessage req;
  req.local_comm_id = connection.local_id;
  req.service_id = service_of_port(request.port);
  req.local_ca_guid = ca_guid_;
  req.local_qpn = qp.number;
  req.remote_cm_response_timeout = kResponseTimeout;
  req.starting_psn = connection.receive_psn;
  req.local_cm_response_timeout = kResponseTimeout;
  req.retry_count = request.retry_count;
  req.partition_key = kDefaultPartition;
  req.path_mtu = code_of(request.path_mtu);
  req.rnr_retry_count = qp.rnr_retry;
  req.max_cm_retries = kMaxRetries;
  req.srq = qp.srq;
  req.primary.local_lid = kPermissiveLid;
  req.primary.remote_lid = kPermissiveLid;
  req.primary.local_gid = gid_of(config_.local);
  req.primary.remote_gid = gid_of(request.remote);
  // As rdma_cm derives it from the ports (cma.c); RoCE takes the UDP source port from it.
  req.primary.flow_label = (std::uint32_t{next_port_} * 31 + request.port) & 0xfffffU;
  req.primary.traffic_class = request.traffic_class;
  req.primary.hop_limit = kHopLimit;
  req.primary.local_ack_timeout = qp.ack_timeout;

  const std::span data(req.private_data);
  emit_cma_header({next_port_, config_.local, request.remote}, data.first<kCmaHeaderSize>());
  assert(request.private_data.size() <= kConnectPrivateData);
  std::ranges::copy(request.private_data, data.subspan<kCmaHeaderSize>().begin());
  return req;
}

std::optional<CommId> CmMachine::connect(const CmConnectRequest& request, const CmQueuePair& qp,
                                         TimePoint now) {
  CmConnection* connection = table_.add();
  if (connection == nullptr) {
    return std::nullopt;
  }
  connection->state = CmState::RequestSent;
  connection->remote = request.remote;
  connection->remote_port = request.port;
  connection->transaction = new_transaction(connection->local_id);
  connection->local_qp = qp.number;
  connection->receive_psn = Psn(static_cast<std::uint32_t>(random_()));
  connection->path_mtu = request.path_mtu;
  connection->retry_count = request.retry_count;
  connection->ack_timeout = qp.ack_timeout;
  connection->traffic_class = request.traffic_class;
  const CmMessage message{connection->transaction, request_message(*connection, request, qp)};
  next_port_ = static_cast<std::uint16_t>((next_port_ + 1) | 0xc000);
  send_until_answered(*connection, message, config_.resends, now);
  return connection->local_id;
}

CmVerdict CmMachine::on_reply(const IpAddress& source, const CmMessage& message,
                              const ConnectReplyMessage& rep, TimePoint now) {
  CmConnection* connection = table_.find(rep.remote_comm_id);
  const auto refuse_reply = [&](RejectReason reason) {
    RejectMessage rej;
    rej.local_comm_id = rep.remote_comm_id;
    rej.remote_comm_id = rep.local_comm_id;
    rej.answered = CmAnswered::Reply;
    rej.reason = reason;
    send(source, {message.transaction, rej});
  };
  if (connection == nullptr) {
    refuse_reply(RejectReason::InvalidCommId);
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  if (connection->state == CmState::Established && connection->remote_id == rep.local_comm_id &&
      connection->remote_guid == rep.local_ca_guid) {
    send_ready(*connection);  // the RTU was lost
    return CmVerdict::Duplicate;
  }
  if (connection->state != CmState::RequestSent && connection->state != CmState::RequestHeld) {
    return CmVerdict::WrongState;
  }
  if (rep.local_qpn.value() <= kGeneralServicesQp.value()) {
    return CmVerdict::InvalidField;
  }
  // A queue pair that is connected already: that other connection is over, and this one cannot
  // be told from it (cm.c, cm_rep_handler()).
  if (CmConnection* old = table_.find_remote_qp(rep.local_ca_guid, rep.local_qpn)) {
    refuse_reply(RejectReason::StaleConnection);
    drop_stale(*old, source, now);
    return CmVerdict::Refused;
  }
  connection->remote_id = rep.local_comm_id;
  connection->remote_guid = rep.local_ca_guid;
  connection->remote_qp = rep.local_qpn;
  if (!table_.index(*connection)) {
    connection->remote_guid.reset();
    return CmVerdict::Duplicate;
  }
  connection->send_psn = rep.starting_psn;
  connection->rnr_retry = rep.rnr_retry_count;
  connection->state = CmState::Established;
  table_.set_due(*connection, std::nullopt);
  connect_queue_pair(*connection);
  send_ready(*connection);
  event(*connection, {.kind = CmEventKind::Established,
                      .private_data = {rep.private_data.begin(), rep.private_data.end()}});
  return CmVerdict::Taken;
}

void CmMachine::send_ready(const CmConnection& connection) {
  ReadyToUseMessage rtu;
  rtu.local_comm_id = connection.local_id;
  rtu.remote_comm_id = connection.remote_id;
  send(connection.remote, {connection.transaction, rtu});
}

}  // namespace ipoverbs::verbs::soft
