#include "verbs/soft/cm_machine.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ipoverbs::verbs::soft {

namespace {

// An EUI-64 that says of itself that it is nobody's: locally administered.
CaGuid random_guid(std::uint64_t random) { return CaGuid(random | std::uint64_t{0x02} << 56U); }

// RFC 6335's dynamic ports.
constexpr std::uint16_t kFirstDynamicPort = 49152;

// The longest that an MRA can make us wait: its code goes up to hours.
constexpr Duration kLongestHold = std::chrono::minutes(2);

}  // namespace

const char* to_string(CmVerdict verdict) {
  static constexpr std::array kNames{
      "taken",         "malformed",   "unsupported", "duplicate",    "unknown connection",
      "wrong address", "wrong state", "refused",     "invalid field"};
  static_assert(kNames.size() == static_cast<std::size_t>(CmVerdict::kCount));
  return kNames.at(std::to_underlying(verdict));
}

CmMachine::CmMachine(const CmConfig& config, std::uint64_t seed)
    : config_(config),
      random_(seed),
      ca_guid_(random_guid(random_())),
      agent_(static_cast<std::uint32_t>(random_())),
      next_port_(static_cast<std::uint16_t>(random_() | kFirstDynamicPort)),
      table_(CommId(static_cast<std::uint32_t>(random_())), config.max_connections) {}

CmVerdict CmMachine::receive(const IpAddress& source, std::span<const std::byte> mad,
                             TimePoint now) {
  const auto message = parse_cm(mad);
  CmVerdict verdict = CmVerdict::Malformed;
  if (message) {
    verdict = dispatch(source, *message, now);
  } else if (message.error() == CmParseError::UnsupportedAttribute) {
    verdict = CmVerdict::Unsupported;
  }
  ++counters_.at(std::to_underlying(verdict));
  return verdict;
}

CmVerdict CmMachine::dispatch(const IpAddress& source, const CmMessage& message, TimePoint now) {
  const CmBody& body = message.body;
  if (const auto* req = std::get_if<ConnectRequestMessage>(&body)) {
    return on_request(source, message, *req, now);
  }
  if (const auto* rep = std::get_if<ConnectReplyMessage>(&body)) {
    return on_reply(source, message, *rep, now);
  }
  if (const auto* rtu = std::get_if<ReadyToUseMessage>(&body)) {
    return on_ready(source, *rtu);
  }
  if (const auto* mra = std::get_if<ReceiptAckMessage>(&body)) {
    return on_receipt_ack(source, *mra, now);
  }
  if (const auto* rej = std::get_if<RejectMessage>(&body)) {
    return on_reject(source, *rej, now);
  }
  if (const auto* dreq = std::get_if<DisconnectRequestMessage>(&body)) {
    return on_disconnect_request(source, message, *dreq, now);
  }
  return on_disconnect_reply(source, std::get<DisconnectReplyMessage>(body), now);
}

// --- Outputs ---------------------------------------------------------------------------------

std::optional<CmOutput> CmMachine::take() {
  if (outputs_.empty()) {
    return std::nullopt;
  }
  CmOutput output = std::move(outputs_.front());
  outputs_.pop_front();
  return output;
}

void CmMachine::send(const IpAddress& destination, const CmMessage& message) {
  outputs_.emplace_back(CmSend{destination, emit_cm(message)});
}

void CmMachine::event(CmConnection& connection, CmEvent event) {
  const bool final =
      event.kind != CmEventKind::ConnectRequest && event.kind != CmEventKind::Established;
  if (!connection.owned || connection.reported) {
    return;
  }
  connection.reported = final;
  event.connection = connection.local_id;
  outputs_.emplace_back(std::move(event));
}

void CmMachine::connect_queue_pair(const CmConnection& connection) {
  outputs_.emplace_back(CmQueuePairConnect{
      connection.local_id, connection.local_qp, connection.remote_qp, connection.remote,
      connection.receive_psn, connection.send_psn, connection.path_mtu, connection.retry_count,
      connection.rnr_retry, connection.ack_timeout, connection.traffic_class});
}

void CmMachine::flush_queue_pair(const CmConnection& connection) {
  outputs_.emplace_back(CmQueuePairFlush{connection.local_id, connection.local_qp});
}

// --- Timers ----------------------------------------------------------------------------------

void CmMachine::send_until_answered(CmConnection& connection, CmMessage message, unsigned resends,
                                    TimePoint now) {
  connection.message = std::move(message);
  connection.resends_left = resends;
  connection.wait = config_.first_resend;
  send(connection.remote, connection.message);
  table_.set_due(connection, now + connection.wait);
}

// False when that was the last time.
bool CmMachine::resend(CmConnection& connection, TimePoint now) {
  if (connection.resends_left == 0) {
    return false;
  }
  --connection.resends_left;
  connection.wait = std::min(2 * connection.wait, config_.longest_resend);
  send(connection.remote, connection.message);
  table_.set_due(connection, now + connection.wait);
  return true;
}

// An MRA: wait for as long as it says before the next resend, in state `held`.
void CmMachine::hold(CmConnection& connection, CmState held, const ReceiptAckMessage& message,
                     TimePoint now) {
  connection.state = held;
  const Duration wait = std::min(timeout_of_code(message.service_timeout), kLongestHold);
  table_.set_due(connection, now + wait + config_.first_resend);
}

void CmMachine::expire(TimePoint now) {
  while (CmConnection* connection = table_.due_at(now)) {
    on_due(*connection, now);
  }
}

void CmMachine::on_due(CmConnection& connection, TimePoint now) {
  switch (connection.state) {
    case CmState::RequestSent:
    case CmState::RequestHeld:
      if (!resend(connection, now)) {
        event(connection, {.kind = CmEventKind::Failed, .error = ETIMEDOUT});
        end(connection, now);
      }
      return;
    case CmState::ReplySent:
    case CmState::ReplyHeld:
      if (!resend(connection, now)) {
        end(connection, now);
        event(connection, {.kind = CmEventKind::Failed, .error = ETIMEDOUT});
      }
      return;
    case CmState::DisconnectSent:
      if (!resend(connection, now)) {
        event(connection, {.kind = CmEventKind::Disconnected});
        enter_time_wait(connection, now);
      }
      return;
    case CmState::TimeWait:
      close(connection);
      return;
    case CmState::RequestReceived:
    case CmState::Established:
    case CmState::Closed:
      break;  // have no timer
  }
  table_.set_due(connection, std::nullopt);
}

// --- What is known ---------------------------------------------------------------------------

std::optional<CmState> CmMachine::state(CommId connection) const {
  const CmConnection* found = table_.find(connection);
  return found == nullptr ? std::nullopt : std::optional(found->state);
}

std::optional<Endpoint> CmMachine::remote(CommId connection) const {
  const CmConnection* found = table_.find(connection);
  if (found == nullptr) {
    return std::nullopt;
  }
  return Endpoint{found->remote, found->remote_port, 0};
}

TransactionId CmMachine::new_transaction(CommId connection) const {
  return TransactionId(std::uint64_t{agent_} << 32U | connection.value());
}

}  // namespace ipoverbs::verbs::soft
