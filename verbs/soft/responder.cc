#include "verbs/soft/responder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace ipoverbs::verbs::soft {

namespace {

// So many that ask are not kept waiting.
constexpr std::uint32_t kAtOnce = 2;

bool is_send(Opcode opcode) { return opcode <= Opcode::SendOnlyImm; }

bool starts(Opcode opcode) {
  using enum Opcode;
  return opcode == SendFirst || opcode == SendOnly || opcode == SendOnlyImm;
}

bool ends(Opcode opcode) { return opcode != Opcode::SendFirst && opcode != Opcode::SendMiddle; }

}  // namespace

Responder::Responder(ReceiveQueue& queue, CompletionRing& completions, QpNumber self)
    : queue_(queue), completions_(completions), self_(self) {}

void Responder::connect(const ResponderConfig& config) {
  config_ = config;
  expected_ = config.expected;
}

Responder::Failure Responder::on_request(const Packet& packet) noexcept {
  const std::int32_t ahead = distance(expected_, packet.bth.psn());
  if (ahead > 0) {
    out_of_sequence(packet.bth.psn());
    return {};
  }
  if (ahead < 0) {
    ++counters_.duplicates;
    asks_ = kAtOnce;
    if (due_ == Due::Nothing && is_send(packet.opcode())) due_ = Due::Ack;
    return {};
  }
  if (!well_formed(packet)) return refuse(NakCode::InvalidRequest, IBV_WC_WR_FLUSH_ERR);
  if (starts(packet.opcode()) && !take_request()) {
    due_ = Due::RnrNak;
    return {};
  }
  if (const Failure failure = place(packet.payload)) return failure;
  advance();
  if (ends(packet.opcode())) complete(packet);
  if (packet.bth.wants_ack()) {
    ++asks_;
    if (due_ == Due::Nothing) due_ = Due::Ack;
  }
  return {};
}

void Responder::out_of_sequence(Psn psn) noexcept {
  ++counters_.out_of_sequence;
  if (due_ == Due::RnrNak || silence_ == Silence::RnrNak) return;
  const bool sender_went_back = dropped_ && !before(beyond_, psn);
  if (!dropped_ || before(beyond_, psn)) beyond_ = psn;
  dropped_ = true;
  if (silence_ == Silence::None || sender_went_back) due_ = Due::SequenceNak;
}

// Whether the packet may come now: the rules of 9.7.4.1.6 and 9.7.4.1.7.
bool Responder::well_formed(const Packet& packet) const noexcept {
  const Opcode opcode = packet.opcode();
  if (!is_send(opcode) || starts(opcode) == in_message_) return false;
  const std::size_t size = packet.payload.size();
  if (!ends(opcode)) return size == config_.mtu;
  return size <= config_.mtu && (starts(opcode) || size > 0);
}

Responder::Failure Responder::refuse(NakCode code, ibv_wc_status status) noexcept {
  ++counters_.fatal_naks;
  due_ = Due::FatalNak;
  fatal_ = code;
  return status;
}

bool Responder::take_request() noexcept {
  if (queue_.empty()) return false;
  taken_ = queue_.front();
  queue_.pop();
  in_message_ = true;
  received_ = 0;
  sge_ = 0;
  sge_offset_ = 0;
  return true;
}

Responder::Failure Responder::place(std::span<const std::byte> payload) noexcept {
  if (!taken_.registered) return refuse(NakCode::RemoteOperational, IBV_WC_LOC_PROT_ERR);
  if (received_ + payload.size() > taken_.capacity) {
    return refuse(NakCode::InvalidRequest, IBV_WC_LOC_LEN_ERR);
  }
  received_ += payload.size();
  unanswered_ += payload.size();
  while (!payload.empty()) {
    const ibv_sge& sge = taken_.sge[sge_];
    const std::size_t n = std::min<std::size_t>(payload.size(), sge.length - sge_offset_);
    if (n == 0) {
      ++sge_;
      sge_offset_ = 0;
      continue;
    }
    std::memcpy(std::bit_cast<std::byte*>(sge.addr + sge_offset_), payload.data(), n);
    sge_offset_ += static_cast<std::uint32_t>(n);
    payload = payload.subspan(n);
  }
  return {};
}

// The expected packet was executed.
void Responder::advance() noexcept {
  ++counters_.packets;
  expected_ = expected_.next();
  if (silence_ == Silence::SequenceNak) {
    recovered_ = true;
    asks_ = kAtOnce;
    if (due_ == Due::Nothing) due_ = Due::Ack;
  }
  silence_ = Silence::None;
  if (due_ == Due::RnrNak) due_ = Due::Ack;
  // A NAK not sent yet stays due as long as packets are known to be lost beyond this one; the
  // packets came in another order than they were sent.
  if (due_ == Due::SequenceNak && before(beyond_, expected_)) due_ = Due::Ack;
  if (due_ != Due::SequenceNak) dropped_ = false;
}

void Responder::complete(const Packet& packet) noexcept {
  in_message_ = false;
  msn_ = (msn_ + 1) & Psn::kMask;
  ++counters_.messages;
  ibv_wc completion{};
  completion.wr_id = taken_.id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = static_cast<std::uint32_t>(received_);
  completion.qp_num = self_.value();
  completion.src_qp = config_.source.value();
  if (layout_of(packet.bth.opcode).immediate) {
    completion.wc_flags = IBV_WC_WITH_IMM;
    completion.imm_data = std::bit_cast<__be32>(packet.immediate);
  }
  completions_.push(completion, packet.bth.solicited());
}

void Responder::on_congestion(TimePoint now) noexcept {
  if (notified_ && now - *notified_ < config_.notify) return;
  notified_ = now;
  notification_due_ = true;
}

// Whether what is due is an ACK that may still wait for company.
bool Responder::waits(TimePoint now) noexcept {
  if (due_ != Due::Ack || config_.ack_delay == Duration{0}) return false;
  if (asks_ >= kAtOnce || unanswered_ > config_.mtu) return false;
  if (!ack_at_) ack_at_ = now + config_.ack_delay;
  return now < *ack_at_;
}

void Responder::transmit(TimePoint now, const Path& path, Burst& burst, bool company) noexcept {
  if (notification_due_ && burst.has_room()) {
    add_notification(path, burst);
    company = true;
  }
  if (due_ == Due::Nothing || !burst.has_room()) return;
  if (!company && waits(now)) return;
  if (recovered_ && due_ == Due::SequenceNak) {
    add_answer(Due::Ack, path, burst);
    if (!burst.has_room()) return;
  }
  add_answer(due_, path, burst);
  due_ = Due::Nothing;
}

void Responder::add_notification(const Path& path, Burst& burst) noexcept {
  static constexpr std::array<std::byte, kNotificationSize> kZeros{};
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(Opcode::CongestionNotification);
  packet.bth.congestion = Bth::kBecn;
  packet.bth.destination = Be24(config_.source.value());
  const ibv_sge zeros{std::bit_cast<std::uint64_t>(kZeros.data()), kNotificationSize, 0};
  burst.add(path, packet, {&zeros, 1}, 0, kNotificationSize);
  notification_due_ = false;
  ++counters_.notifications;
}

void Responder::add_answer(Due due, const Path& path, Burst& burst) noexcept {
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(Opcode::Acknowledge);
  packet.bth.destination = Be24(config_.source.value());
  packet.aeth.msn = Be24(msn_);
  // A NAK names the packet that is expected, an ACK the last one that came.
  Psn psn = expected_;
  switch (due) {
    case Due::Nothing:
    case Due::Ack:
      packet.aeth.syndrome = kAckWithoutCredits;
      psn = expected_.minus(1);
      ++counters_.acks;
      break;
    case Due::SequenceNak:
      packet.aeth.syndrome = nak_syndrome(NakCode::SequenceError);
      silence_ = Silence::SequenceNak;
      ++counters_.sequence_naks;
      break;
    case Due::RnrNak:
      packet.aeth.syndrome = rnr_syndrome(config_.min_rnr_timer);
      silence_ = Silence::RnrNak;
      ++counters_.rnr_naks;
      break;
    case Due::FatalNak:
      packet.aeth.syndrome = nak_syndrome(fatal_);
      break;
  }
  packet.bth.sequence = Be24(psn.value());
  burst.add(path, packet, {}, 0, 0);
  recovered_ = false;
  asks_ = 0;
  unanswered_ = 0;
  ack_at_.reset();
}

void Responder::flush(ibv_wc_status status) noexcept {
  if (!in_message_) return;
  in_message_ = false;
  ibv_wc completion{};
  completion.wr_id = taken_.id;
  completion.status = status;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = self_.value();
  completions_.push(completion, true);
}

}  // namespace ipoverbs::verbs::soft
