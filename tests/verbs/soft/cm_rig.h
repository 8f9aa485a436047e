// For tests of the connection manager: a machine, what it says in words, and messages to it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "verbs/soft/cm_machine.h"
#include "verbs/soft/cma_header.h"

namespace ipoverbs::verbs::soft::test {

inline const IpAddress kHere = *IpAddress::parse("192.0.2.1");
inline const IpAddress kThere = *IpAddress::parse("192.0.2.2");
inline const IpAddress kElsewhere = *IpAddress::parse("192.0.2.3");
inline constexpr CaGuid kTheirGuid{0x505400fffe000002};
inline constexpr CommId kTheirId{0x83958adf};
inline constexpr QpNumber kTheirQp{0x11};
inline constexpr QpNumber kOurQp{0x4711};
inline constexpr std::uint16_t kPort = 4755;

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The far side as a script has it.
class CmScript {
 public:
  explicit CmScript(CmConfig config = {}) : machine((config.local = kHere, config), 1) {
    machine.listen(kPort);
  }

  // What the machine has put out since the last call: "REQ", "connect", "flush" and events, joined
  // by commas. The messages, events and queue pairs are kept in `sent`, `events` and `connects`.
  std::string said() {
    std::string words;
    while (const auto output = machine.take()) {
      words += (words.empty() ? "" : ", ") + word_of(*output);
    }
    return words;
  }

  CmVerdict hear(const CmBody& body, const IpAddress& from = kThere) {
    return machine.receive(from, emit_cm({transaction, body}), now);
  }

  // --- Us -----------------------------------------------------------------------------------
  CommId dial() {
    const auto data = bytes_of("hello");
    return *machine.connect({.remote = kThere,
                             .port = kPort,
                             .path_mtu = PathMtu(1024),
                             .retry_count = 6,
                             .traffic_class = 8,
                             .private_data = data},
                            {.number = kOurQp, .srq = true, .rnr_retry = 5, .ack_timeout = 13},
                            now);
  }
  bool accept(CommId id) {
    return machine.accept(id, {.number = kOurQp, .rnr_retry = 4, .ack_timeout = 12},
                          bytes_of("welcome"), now);
  }
  // To an established connection, dialled from here or there; nothing is left to be said.
  CommId establish_active() {
    const CommId id = dial();
    said();
    hear(reply());
    said();
    return id;
  }
  CommId establish_passive() {
    hear(request());
    said();
    const CommId id = events.back().connection;
    accept(id);
    said();
    hear(ready(id));
    said();
    return id;
  }
  // Moves the clock and lets what is due happen.
  void sleep(Duration duration) {
    now += duration;
    machine.expire(now);
  }

  // --- Them ---------------------------------------------------------------------------------
  static ConnectRequestMessage request() {
    ConnectRequestMessage req;
    req.local_comm_id = kTheirId;
    req.service_id = service_of_port(kPort);
    req.local_ca_guid = kTheirGuid;
    req.local_qpn = kTheirQp;
    req.starting_psn = Psn(0x99f929);
    req.retry_count = 7;
    req.rnr_retry_count = 6;
    req.path_mtu = 3;
    req.primary.local_ack_timeout = 19;
    req.primary.traffic_class = 16;
    const std::span data(req.private_data);
    emit_cma_header({40000, kThere, kHere}, data.first<kCmaHeaderSize>());
    data[kCmaHeaderSize] = std::byte{'h'};
    return req;
  }
  // To the last REQ that was sent.
  ConnectReplyMessage reply() const {
    ConnectReplyMessage rep;
    rep.local_comm_id = kTheirId;
    rep.remote_comm_id = last<ConnectRequestMessage>().local_comm_id;
    rep.local_qpn = kTheirQp;
    rep.starting_psn = Psn(0x27d1ae);
    rep.rnr_retry_count = 3;
    rep.local_ca_guid = kTheirGuid;
    rep.private_data[0] = std::byte{'w'};
    return rep;
  }
  static ReadyToUseMessage ready(CommId ours) { return {kTheirId, ours, {}}; }
  static ReceiptAckMessage receipt_ack(CommId ours, CmAnswered answered, std::uint8_t timeout) {
    return {kTheirId, ours, answered, timeout, {}};
  }
  static RejectMessage reject(CommId ours, CmAnswered answered, RejectReason reason) {
    RejectMessage rej;
    rej.local_comm_id = kTheirId;
    rej.remote_comm_id = ours;
    rej.answered = answered;
    rej.reason = reason;
    return rej;
  }
  static RejectMessage give_up() {  // of who doesn't know our ID
    RejectMessage rej = reject(CommId(0), CmAnswered::Other, RejectReason::Timeout);
    store(rej.information, 0, Be64(kTheirGuid.value()));
    rej.information_length = 8;
    return rej;
  }
  static DisconnectRequestMessage disconnect(CommId ours) { return {kTheirId, ours, kOurQp, {}}; }
  static DisconnectReplyMessage disconnected(CommId ours) { return {kTheirId, ours, {}}; }

  // The last message of its kind that was sent.
  template <class Message>
  Message last() const {
    for (auto it = sent.rbegin(); it != sent.rend(); ++it) {
      if (const auto* found = std::get_if<Message>(&it->body)) return *found;
    }
    throw std::runtime_error("no such message was sent");
  }

  CmMachine machine;
  TimePoint now{std::chrono::seconds(1000)};
  TransactionId transaction{0x00000002df8a9583};
  std::vector<CmMessage> sent;
  std::vector<IpAddress> destinations;
  std::vector<CmEvent> events;
  std::vector<CmQueuePairConnect> connects;

 private:
  std::string word_of(const CmOutput& output) {
    if (const auto* send = std::get_if<CmSend>(&output)) {
      sent.push_back(*parse_cm(send->mad));
      destinations.push_back(send->destination);
      return name_of(sent.back().body);
    }
    if (const auto* connect = std::get_if<CmQueuePairConnect>(&output)) {
      connects.push_back(*connect);
      return "connect";
    }
    if (std::holds_alternative<CmQueuePairFlush>(output)) {
      return "flush";
    }
    events.push_back(std::get<CmEvent>(output));
    static constexpr std::array kNames{"request", "established", "rejected", "failed",
                                       "disconnected"};
    return kNames.at(std::to_underlying(events.back().kind));
  }
};

}  // namespace ipoverbs::verbs::soft::test
