// The connection manager: how connections end, before they are established and after.

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "core/byte_order.h"
#include "verbs/soft/cm_machine.h"

namespace ipoverbs::verbs::soft {

// --- Messages that end something -------------------------------------------------------------

// A REJ for want of time names its sender by the adapter, because who gave up on a REQ has never
// learnt the other side's communication ID (12.6.7.2; cm.c, cm_acquire_rejected_id()).
CmConnection* CmMachine::rejected_connection(const RejectMessage& rej) const {
  if (rej.reason == RejectReason::Timeout && rej.information_length >= sizeof(Be64)) {
    const CaGuid guid(load<Be64>(rej.information).value());
    if (CmConnection* found = table_.find_remote(guid, rej.local_comm_id)) {
      return found;
    }
  }
  CmConnection* found = table_.find(rej.remote_comm_id);
  const bool named = found != nullptr && (rej.answered == CmAnswered::Request ||
                                          (found->remote_guid &&  //
                                           found->remote_id == rej.local_comm_id));
  return named ? found : nullptr;
}

CmVerdict CmMachine::on_reject(const IpAddress& source, const RejectMessage& rej, TimePoint now) {
  CmConnection* connection = rejected_connection(rej);
  if (connection == nullptr) {
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  switch (connection->state) {
    case CmState::RequestSent:
    case CmState::RequestHeld:
      event(*connection, {.kind = CmEventKind::Rejected,
                          .private_data = {rej.private_data.begin(), rej.private_data.end()},
                          .reason = rej.reason});
      close(*connection);
      return CmVerdict::Taken;
    case CmState::ReplySent:
    case CmState::ReplyHeld:
      flush_queue_pair(*connection);
      [[fallthrough]];
    case CmState::RequestReceived:
      event(*connection, {.kind = CmEventKind::Failed, .reason = rej.reason, .error = ECONNRESET});
      enter_time_wait(*connection, now);
      return CmVerdict::Taken;
    case CmState::Established:
      flush_queue_pair(*connection);
      [[fallthrough]];
    case CmState::DisconnectSent:
      event(*connection, {.kind = CmEventKind::Disconnected, .reason = rej.reason});
      enter_time_wait(*connection, now);
      return CmVerdict::Taken;
    case CmState::TimeWait:
    case CmState::Closed:
      break;
  }
  return CmVerdict::WrongState;
}

CmVerdict CmMachine::on_receipt_ack(const IpAddress& source, const ReceiptAckMessage& mra,
                                    TimePoint now) {
  CmConnection* connection = table_.find(mra.remote_comm_id);
  if (connection == nullptr) {
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  if (mra.answered == CmAnswered::Request) {
    if (connection->state == CmState::RequestSent) {
      hold(*connection, CmState::RequestHeld, mra, now);
      return CmVerdict::Taken;
    }
    return connection->state == CmState::RequestHeld ? CmVerdict::Duplicate : CmVerdict::WrongState;
  }
  if (mra.answered == CmAnswered::Reply && connection->remote_id == mra.local_comm_id) {
    if (connection->state == CmState::ReplySent) {
      hold(*connection, CmState::ReplyHeld, mra, now);
      return CmVerdict::Taken;
    }
    return connection->state == CmState::ReplyHeld ? CmVerdict::Duplicate : CmVerdict::WrongState;
  }
  return CmVerdict::WrongState;
}

CmVerdict CmMachine::on_disconnect_request(const IpAddress& source, const CmMessage& message,
                                           const DisconnectRequestMessage& dreq, TimePoint now) {
  // Answered even when nothing is known of the connection, so that who asks can forget it too.
  const auto reply = [&] {
    DisconnectReplyMessage drep;
    drep.local_comm_id = dreq.remote_comm_id;
    drep.remote_comm_id = dreq.local_comm_id;
    send(source, {message.transaction, drep});
  };
  CmConnection* connection = table_.find(dreq.remote_comm_id);
  if (connection == nullptr || !connection->remote_guid ||
      connection->remote_id != dreq.local_comm_id) {
    reply();
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  if (connection->local_qp != dreq.remote_qpn) {
    return CmVerdict::InvalidField;
  }
  switch (connection->state) {
    case CmState::ReplySent:
    case CmState::ReplyHeld:
      flush_queue_pair(*connection);
      reply();
      event(*connection, {.kind = CmEventKind::Failed, .error = ECONNRESET});
      break;
    case CmState::Established:
      flush_queue_pair(*connection);
      [[fallthrough]];
    case CmState::DisconnectSent:
      reply();
      event(*connection, {.kind = CmEventKind::Disconnected});
      break;
    case CmState::TimeWait:
      reply();
      return CmVerdict::Duplicate;
    default:
      return CmVerdict::WrongState;
  }
  enter_time_wait(*connection, now);
  return CmVerdict::Taken;
}

CmVerdict CmMachine::on_disconnect_reply(const IpAddress& source,
                                         const DisconnectReplyMessage& drep, TimePoint now) {
  CmConnection* connection = table_.find(drep.remote_comm_id);
  if (connection == nullptr || connection->remote_id != drep.local_comm_id) {
    return CmVerdict::UnknownConnection;
  }
  if (connection->remote != source) {
    return CmVerdict::WrongAddress;
  }
  if (connection->state == CmState::TimeWait) {
    return CmVerdict::Duplicate;
  }
  if (connection->state != CmState::DisconnectSent) {
    return CmVerdict::WrongState;
  }
  event(*connection, {.kind = CmEventKind::Disconnected});
  enter_time_wait(*connection, now);
  return CmVerdict::Taken;
}

// The other side has put the queue pair that `old` was with to a new use.
void CmMachine::drop_stale(CmConnection& old, const IpAddress& source, TimePoint now) {
  if (old.remote == source && old.state == CmState::Established) {
    send_disconnect(old, now);
    event(old, {.kind = CmEventKind::Disconnected, .reason = RejectReason::StaleConnection});
  }
}

// --- What the user ends, or the time that ran out --------------------------------------------

void CmMachine::disconnect(CommId id, TimePoint now) {
  if (CmConnection* connection = table_.find(id)) {
    end(*connection, now);
  }
}

void CmMachine::release(CommId id, TimePoint now) {
  CmConnection* connection = table_.find(id);
  if (connection == nullptr) {
    return;
  }
  connection->owned = false;
  if (connection->state == CmState::Closed) {
    table_.erase(*connection);
  } else {
    end(*connection, now);
  }
}

void CmMachine::end(CmConnection& connection, TimePoint now) {
  switch (connection.state) {
    case CmState::RequestSent:
    case CmState::RequestHeld:
      send_reject(connection, CmAnswered::Other, RejectReason::Timeout, {});
      close(connection);
      return;
    case CmState::RequestReceived:
      send_reject(connection, CmAnswered::Request, RejectReason::ConsumerDefined, {});
      enter_time_wait(connection, now);
      return;
    case CmState::ReplySent:
    case CmState::ReplyHeld:
      flush_queue_pair(connection);
      send_reject(connection, CmAnswered::Other, RejectReason::ConsumerDefined, {});
      enter_time_wait(connection, now);
      return;
    case CmState::Established:
      send_disconnect(connection, now);
      return;
    case CmState::DisconnectSent:
    case CmState::TimeWait:
    case CmState::Closed:
      return;
  }
}

// Kept as the connection's message: the answer to what comes late.
void CmMachine::send_reject(CmConnection& connection, CmAnswered answered, RejectReason reason,
                            std::span<const std::byte> private_data) {
  RejectMessage rej;
  rej.local_comm_id = connection.local_id;
  rej.remote_comm_id = connection.remote_id;
  rej.answered = answered;
  rej.reason = reason;
  if (reason == RejectReason::Timeout) {
    store(rej.information, 0, Be64(ca_guid_.value()));
    rej.information_length = sizeof(Be64);
  }
  assert(private_data.size() <= rej.private_data.size());
  std::ranges::copy(private_data, rej.private_data.begin());
  connection.message = {connection.transaction, rej};
  send(connection.remote, connection.message);
}

void CmMachine::send_disconnect(CmConnection& connection, TimePoint now) {
  flush_queue_pair(connection);
  table_.forget_remote_qp(connection);
  DisconnectRequestMessage dreq;
  dreq.local_comm_id = connection.local_id;
  dreq.remote_comm_id = connection.remote_id;
  dreq.remote_qpn = connection.remote_qp;
  connection.state = CmState::DisconnectSent;
  send_until_answered(connection, {new_transaction(connection.local_id), dreq},
                      config_.disconnect_resends, now);
}

void CmMachine::enter_time_wait(CmConnection& connection, TimePoint now) {
  connection.state = CmState::TimeWait;
  table_.forget_remote_qp(connection);
  table_.set_due(connection, now + config_.time_wait);
}

// The connection may be gone when this returns.
void CmMachine::close(CmConnection& connection) {
  connection.state = CmState::Closed;
  table_.set_due(connection, std::nullopt);
  table_.forget_remote(connection);
  if (!connection.owned) {
    table_.erase(connection);
  }
}

}  // namespace ipoverbs::verbs::soft
