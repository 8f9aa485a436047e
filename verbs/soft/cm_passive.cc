// The connection manager as the side that listens.

#include <algorithm>
#include <cassert>

#include "verbs/soft/cm_machine.h"
#include "verbs/soft/cma_header.h"

namespace ipoverbs::verbs::soft {

namespace {

// 4.3 s, said in an MRA: how long the user may take. Whatever comes then is answered by another.
constexpr std::uint8_t kServiceTimeout = 20;
// 0.27 ms: how long an ACK of ours may take (a REP's target ACK delay).
constexpr std::uint8_t kAckDelay = 6;

std::optional<CmaHeader> addresses_of(const ConnectRequestMessage& req) {
  return parse_cma_header(std::span(req.private_data).first<kCmaHeaderSize>());
}

}  // namespace

CmVerdict CmMachine::on_request(const IpAddress& source, const CmMessage& message,
                                const ConnectRequestMessage& req, TimePoint now) {
  if (CmConnection* same = table_.find_remote(req.local_ca_guid, req.local_comm_id)) {
    return same->remote == source ? on_duplicate_request(*same) : CmVerdict::WrongAddress;
  }
  if (req.local_qpn.value() <= kGeneralServicesQp.value()) {
    return CmVerdict::InvalidField;
  }
  // Their queue pair is new, so the connection that it was in before is over and they don't know
  // it any more (cm.c, cm_match_req()). They may come again when it is gone here as well.
  if (CmConnection* old = table_.find_remote_qp(req.local_ca_guid, req.local_qpn)) {
    refuse(source, message, req, RejectReason::StaleConnection);
    drop_stale(*old, source, now);
    return CmVerdict::Refused;
  }
  if (const auto reason = why_refuse(source, req)) {
    return refuse(source, message, req, *reason);
  }
  return take_request(source, message, req);
}

CmVerdict CmMachine::on_duplicate_request(CmConnection& connection) {
  switch (connection.state) {
    case CmState::RequestReceived: {  // the user is slow
      ReceiptAckMessage mra;
      mra.local_comm_id = connection.local_id;
      mra.remote_comm_id = connection.remote_id;
      mra.service_timeout = kServiceTimeout;
      send(connection.remote, {connection.transaction, mra});
      break;
    }
    case CmState::TimeWait:
      // The REJ was lost; or the request was under way for all that time.
      if (!std::holds_alternative<RejectMessage>(connection.message.body)) {
        send_reject(connection, CmAnswered::Request, RejectReason::StaleConnection, {});
      } else {
        send(connection.remote, connection.message);
      }
      break;
    default:
      break;  // the REP's timer covers its loss
  }
  return CmVerdict::Duplicate;
}

std::optional<RejectReason> CmMachine::why_refuse(const IpAddress& source,
                                                  const ConnectRequestMessage& req) const {
  const auto port = port_of_service(req.service_id);
  if (!port || !listening_.contains(*port)) {
    return RejectReason::InvalidServiceId;
  }
  if (req.transport != TransportService::ReliableConnection || req.extended_transport != 0) {
    return RejectReason::InvalidTransportType;
  }
  const auto path_mtu = path_mtu_of_code(req.path_mtu);
  if (!path_mtu || *path_mtu > config_.max_path_mtu ||
      (config_.path_mtu_to && *path_mtu > config_.path_mtu_to(source))) {
    return RejectReason::InvalidPathMtu;
  }
  // rdma_cm rejects a request whose addresses it cannot place as its consumer would (cma.c).
  const auto addresses = addresses_of(req);
  if (!addresses || addresses->source != source || addresses->destination != config_.local) {
    return RejectReason::ConsumerDefined;
  }
  if (table_.pending() >= config_.max_pending) {
    return RejectReason::NoResources;
  }
  return std::nullopt;
}

// Without a connection: nothing is remembered.
CmVerdict CmMachine::refuse(const IpAddress& source, const CmMessage& message,
                            const ConnectRequestMessage& req, RejectReason reason) {
  RejectMessage rej;
  rej.remote_comm_id = req.local_comm_id;
  rej.answered = CmAnswered::Request;
  rej.reason = reason;
  send(source, {message.transaction, rej});
  return CmVerdict::Refused;
}

CmVerdict CmMachine::take_request(const IpAddress& source, const CmMessage& message,
                                  const ConnectRequestMessage& req) {
  CmConnection* connection = table_.add();
  if (connection == nullptr) {
    return refuse(source, message, req, RejectReason::NoResources);
  }
  const auto addresses = addresses_of(req);
  connection->state = CmState::RequestReceived;
  connection->remote = source;
  connection->remote_port = addresses->source_port;
  connection->remote_id = req.local_comm_id;
  connection->remote_guid = req.local_ca_guid;
  connection->remote_qp = req.local_qpn;
  connection->transaction = message.transaction;
  connection->send_psn = req.starting_psn;
  connection->path_mtu = *path_mtu_of_code(req.path_mtu);
  connection->retry_count = req.retry_count;
  connection->rnr_retry = req.rnr_retry_count;
  connection->traffic_class = req.primary.traffic_class;
  [[maybe_unused]] const bool indexed = table_.index(*connection);
  assert(indexed);
  const auto data = std::span(req.private_data).subspan<kCmaHeaderSize>();
  event(*connection, {.kind = CmEventKind::ConnectRequest,
                      .private_data = {data.begin(), data.end()},
                      .port = *port_of_service(req.service_id),
                      .remote = {source, addresses->source_port, 0},
                      .path_mtu = connection->path_mtu});
  return CmVerdict::Taken;
}

bool CmMachine::accept(CommId id, const CmQueuePair& qp, std::span<const std::byte> private_data,
                       TimePoint now) {
  CmConnection* connection = table_.find(id);
  if (connection == nullptr || connection->state != CmState::RequestReceived) {
    return false;
  }
  connection->local_qp = qp.number;
  connection->receive_psn = Psn(static_cast<std::uint32_t>(random_()));
  connection->ack_timeout = qp.ack_timeout;
  ConnectReplyMessage rep;
  rep.local_comm_id = connection->local_id;
  rep.remote_comm_id = connection->remote_id;
  rep.local_qpn = qp.number;
  rep.starting_psn = connection->receive_psn;
  rep.target_ack_delay = kAckDelay;
  rep.rnr_retry_count = qp.rnr_retry;
  rep.srq = qp.srq;
  rep.local_ca_guid = ca_guid_;
  assert(private_data.size() <= rep.private_data.size());
  std::ranges::copy(private_data, rep.private_data.begin());
  connection->state = CmState::ReplySent;
  connect_queue_pair(*connection);
  send_until_answered(*connection, {connection->transaction, rep}, config_.resends, now);
  return true;
}

bool CmMachine::reject(CommId id, std::span<const std::byte> private_data, TimePoint now) {
  CmConnection* connection = table_.find(id);
  if (connection == nullptr || connection->state != CmState::RequestReceived) {
    return false;
  }
  connection->reported = true;
  send_reject(*connection, CmAnswered::Request, RejectReason::ConsumerDefined, private_data);
  enter_time_wait(*connection, now);
  return true;
}

CmVerdict CmMachine::on_ready(const IpAddress& source, const ReadyToUseMessage& rtu) {
  CmConnection* connection = table_.find(rtu.remote_comm_id);
  if (connection == nullptr || connection->remote_id != rtu.local_comm_id) {
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  switch (connection->state) {
    case CmState::ReplySent:
    case CmState::ReplyHeld:
      establish(*connection);
      return CmVerdict::Taken;
    case CmState::Established:
      return CmVerdict::Duplicate;
    default:
      return CmVerdict::WrongState;
  }
}

void CmMachine::data_received(CommId id) {
  CmConnection* connection = table_.find(id);
  if (connection != nullptr &&
      (connection->state == CmState::ReplySent || connection->state == CmState::ReplyHeld)) {
    establish(*connection);
  }
}

void CmMachine::establish(CmConnection& connection) {
  connection.state = CmState::Established;
  table_.set_due(connection, std::nullopt);
  event(connection, {.kind = CmEventKind::Established});
}

}  // namespace ipoverbs::verbs::soft
