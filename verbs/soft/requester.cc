#include "verbs/soft/requester.h"

#include <algorithm>

namespace ipoverbs::verbs::soft {

Requester::Requester(SendQueue& queue, CompletionRing& completions, QpNumber self)
    : queue_(queue), completions_(completions), self_(self) {}

void Requester::connect(const RequesterConfig& config) {
  config_ = config;
  ack_timeout_ = soft::ack_timeout(config.ack_timeout);
  window_ = SendWindow(config.window_limit, config.mtu);
  unacked_ = next_psn_ = sent_end_ = config.first;
  next_ = {queue_.head(), 0};
  begun_ = queue_.head();
}

// --- sending ---

std::uint64_t Requester::cost(const SendRequest& request, std::uint32_t from,
                              std::uint32_t to) const noexcept {
  const auto byte = [&](std::uint32_t packet) {
    return std::min<std::uint64_t>(std::uint64_t{packet} * config_.mtu, request.length);
  };
  return byte(to) - byte(from) + (to - from) * SendWindow::kPacketCost;
}

void Requester::begin(SendRequest& request) noexcept {
  request.first = sent_end_;
  request.packets = std::max((request.length + config_.mtu - 1) / config_.mtu, 1U);
  ++begun_;
}

bool Requester::may_send() noexcept {
  if (next_.request == queue_.tail()) return false;
  SendRequest& request = queue_[next_.request];
  if (request.defect != IBV_WC_SUCCESS) return false;
  if (next_.request == begun_) begin(request);
  return under_way_ == 0 ||
         under_way_ + cost(request, next_.packet, next_.packet + 1) <= window_.bytes();
}

Requester::Failure Requester::transmit(TimePoint now, const Path& path, Burst& burst) noexcept {
  if (rnr_until_) return {};
  if (probe_now_ && burst.has_room()) send_probe(now, path, burst);
  while (burst.has_room() && may_send()) send_next(now, path, burst);
  // Its turn to be completed has come when all before it are.
  if (!queue_.empty() && next_.request == queue_.head()) {
    const ibv_wc_status defect = queue_[queue_.head()].defect;
    if (defect != IBV_WC_SUCCESS) return defect;
  }
  return {};
}

// Called when `sent` had a packet sent and next_ was moved on.
bool Requester::wants_answer(const SendRequest& sent, TimePoint now) noexcept {
  const bool last_of_message = next_.packet == 0;
  if (last_of_message && messages_unasked_ >= std::min(config_.tuning.ask_messages,
                                                       std::max(queue_.depth() / 2, 1U))) {
    return true;
  }
  if (bytes_unasked_ >= window_.bytes() / 4) return true;
  if (may_send()) return false;
  // The window is closed, or a defect waits: one answer under way will do to go on.
  if (next_.request != queue_.tail()) return !asked_under_way_;
  return sent.signaled || !asked_ || now - *asked_ >= config_.tuning.ask_idle;
}

void Requester::send_next(TimePoint now, const Path& path, Burst& burst) noexcept {
  const Cursor at = next_;
  const SendRequest& request = queue_[at.request];
  if (!outstanding()) {
    if (silences_ == 0) heard_ = answered_ = now;
    answer_due_ = now + answer_timeout();
  }
  const std::uint64_t bytes = cost(request, at.packet, at.packet + 1);
  under_way_ += bytes;
  bytes_unasked_ += bytes;
  if (++next_.packet == request.packets) {
    next_ = {at.request + 1, 0};
    ++messages_unasked_;
  }
  const Psn psn = next_psn_;
  next_psn_ = psn.next();
  const bool again = psn != sent_end_;
  if (again) {
    ++counters_.resent;
  } else {
    sent_end_ = next_psn_;
  }
  const bool ask = wants_answer(request, now);
  add(path, burst, at, ask);
  if (ask) {
    note_asked(now, psn);
    if (!again && !timing_) {
      timing_ = true;
      timed_ = psn;
      timed_at_ = now;
    }
  }
  last_sent_ = now;
  probed_ = false;
}

void Requester::note_asked(TimePoint now, Psn psn) noexcept {
  asked_under_way_ = true;
  asked_psn_ = psn;
  messages_unasked_ = 0;
  bytes_unasked_ = 0;
  asked_ = now;
}

// The packet before next_psn_, which is under way, once more.
void Requester::send_probe(TimePoint now, const Path& path, Burst& burst) noexcept {
  probe_now_ = false;
  if (!outstanding()) return;
  Cursor at = next_;
  if (at.packet == 0) at = {at.request - 1, queue_[at.request - 1].packets};
  --at.packet;
  // An answer to either copy would be taken for one to the first.
  timing_ = false;
  ++counters_.probes;
  note_asked(now, next_psn_.minus(1));
  add(path, burst, at, true);
}

void Requester::add(const Path& path, Burst& burst, Cursor at, bool ask) noexcept {
  const SendRequest& request = queue_[at.request];
  const bool first = at.packet == 0;
  const bool last = at.packet + 1 == request.packets;
  using enum Opcode;
  Opcode opcode = first ? SendFirst : SendMiddle;
  if (last && request.with_immediate) opcode = first ? SendOnlyImm : SendLastImm;
  if (last && !request.with_immediate) opcode = first ? SendOnly : SendLast;
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(opcode);
  packet.bth.flags = last && request.solicited ? Bth::kSolicited : std::uint8_t{0};
  packet.bth.destination = Be24(config_.destination.value());
  packet.bth.ack_request = ask ? Bth::kAckRequest : std::uint8_t{0};
  packet.bth.sequence = Be24(request.first.plus(at.packet).value());
  packet.immediate = request.immediate;
  const std::uint64_t offset = std::uint64_t{at.packet} * config_.mtu;
  const auto length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.mtu, request.length - offset));
  burst.add(path, packet, queue_.sges(at.request), offset, length);
  ++counters_.packets;
}

// --- answers ---

void Requester::acknowledge(Psn up_to, TimePoint now) noexcept {
  heard_ = answered_ = now;
  silences_ = 0;
  if (unacked_ == up_to) return;
  if (timing_ && before(timed_, up_to)) {
    rtt_.sample(now - timed_at_, config_.tuning.ack_delay);
    timing_ = false;
    backoff_ = 0;
  }
  std::uint64_t bytes = 0;
  while (unacked_ != up_to) {
    const SendRequest& request = queue_[queue_.head()];
    const auto from = static_cast<std::uint32_t>(distance(request.first, unacked_));
    const auto to =
        std::min(request.packets, static_cast<std::uint32_t>(distance(request.first, up_to)));
    bytes += cost(request, from, to);
    unacked_ = request.first.plus(to);
    if (to < request.packets) continue;
    complete(request, IBV_WC_SUCCESS);
    ++counters_.messages;
    queue_.pop();
  }
  if (before(next_psn_, unacked_)) {
    // What was to be sent again had arrived after all.
    go_back();
    bytes = 0;
  }
  window_.on_acknowledged(bytes, under_way_);
  under_way_ -= bytes;
  if (before(asked_psn_, unacked_)) asked_under_way_ = false;
  rnr_count_ = 0;
  rnr_until_.reset();
  probed_ = false;
  probe_now_ = false;
  if (recovering_ && !before(unacked_, recovered_)) recovering_ = false;
  answer_due_ = now + answer_timeout();
}

Requester::Failure Requester::on_answer(const Packet& packet, TimePoint now) noexcept {
  const AckKind kind = ack_kind(packet.aeth.syndrome);
  const std::int32_t at = distance(unacked_, packet.bth.psn());
  const std::int32_t sent = distance(unacked_, sent_end_);
  // An ACK names the last packet that arrived, a NAK the one that is expected.
  const bool ack = kind == AckKind::Ack;
  if (kind == AckKind::Reserved || (ack ? at < -1 || at >= sent : at < 0 || at >= sent)) {
    ++counters_.stale_answers;
    return {};
  }
  if (ack) {
    acknowledge(packet.bth.psn().next(), now);
    return {};
  }
  return kind == AckKind::RnrNak ? on_rnr(packet, now) : on_nak(packet, now);
}

Requester::Failure Requester::on_nak(const Packet& packet, TimePoint now) noexcept {
  const auto code = nak_code(packet.aeth.syndrome);
  if (!code) {
    ++counters_.stale_answers;
    return {};
  }
  const Psn expected = packet.bth.psn();
  acknowledge(expected, now);
  switch (*code) {
    case NakCode::InvalidRequest:
      return IBV_WC_REM_INV_REQ_ERR;
    case NakCode::RemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case NakCode::RemoteOperational:
      return IBV_WC_REM_OP_ERR;
    case NakCode::SequenceError:
      break;
  }
  ++counters_.sequence_naks;
  if (rnr_until_) return {};
  // Copies of one NAK: what it asks for is already on its way.
  if (went_back_to_ == expected && now - went_back_at_ < rtt_.smoothed() / 2) return {};
  on_loss();
  went_back_to_ = expected;
  went_back_at_ = now;
  go_back();
  return {};
}

Requester::Failure Requester::on_rnr(const Packet& packet, TimePoint now) noexcept {
  acknowledge(packet.bth.psn(), now);
  ++counters_.rnr_naks;
  if (rnr_until_) return {};
  constexpr std::uint8_t kEndless = 7;
  if (config_.rnr_retry != kEndless && ++rnr_count_ > config_.rnr_retry) {
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  rnr_until_ = now + rnr_wait(packet.aeth.syndrome);
  go_back();
  return {};
}

void Requester::on_congestion() noexcept {
  ++counters_.notifications;
  on_loss();
}

// Once for all that is under way.
void Requester::on_loss() noexcept {
  if (recovering_) return;
  recovering_ = true;
  recovered_ = sent_end_;
  window_.on_loss();
}

void Requester::go_back() noexcept {
  next_psn_ = unacked_;
  next_ = {queue_.head(), 0};
  if (next_.request != begun_) {
    next_.packet = static_cast<std::uint32_t>(distance(queue_[next_.request].first, unacked_));
  }
  under_way_ = 0;
  timing_ = false;
  asked_under_way_ = false;
}

// --- time ---

Duration Requester::answer_timeout() const noexcept {
  const RcTuning& tuning = config_.tuning;
  const Duration longest = ack_timeout_.value_or(tuning.max_timeout);
  const Duration once = rtt_.measured() ? rtt_.timeout(tuning.min_timeout) : tuning.first_timeout;
  return std::min(once * backed_off(), longest);
}

Duration Requester::probe_after() const noexcept {
  return std::max(config_.tuning.probe, 2 * rtt_.smoothed()) * backed_off();
}

std::optional<TimePoint> Requester::deadline() const noexcept {
  if (rnr_until_) return rnr_until_;
  if (!outstanding()) return std::nullopt;
  if (probed_ || !rtt_.measured()) return answer_due_;
  return std::min(answer_due_, last_sent_ + probe_after());
}

bool Requester::exhausted(TimePoint now) const noexcept {
  if (!ack_timeout_) return false;
  const std::uint32_t tries = config_.retry_count + 1U;
  const Duration patience = tries * *ack_timeout_;
  return silences_ >= tries &&
         (now - heard_ >= patience || now - answered_ >= kUnanswered * patience);
}

Requester::Failure Requester::on_timer(TimePoint now) noexcept {
  if (rnr_until_) {
    if (now >= *rnr_until_) rnr_until_.reset();
    return {};
  }
  if (!outstanding()) return {};
  const bool due = now >= answer_due_;
  if (due && (asked_under_way_ || probed_)) {
    ++silences_;
    ++backoff_;
    ++counters_.timeouts;
    if (exhausted(now)) return IBV_WC_RETRY_EXC_ERR;
    // Before a round trip was measured it was the timeout that was wrong, most likely, and little
    // is under way.
    if (rtt_.measured()) window_.on_timeout();
    recovering_ = true;
    recovered_ = sent_end_;
    went_back_to_.reset();
    go_back();
    answer_due_ = now + answer_timeout();
  } else if (due || (!probed_ && rtt_.measured() && now >= last_sent_ + probe_after())) {
    // Where nobody asked, no answer is late: it is asked for.
    probed_ = true;
    probe_now_ = true;
    if (due) answer_due_ = now + answer_timeout();
  }
  return {};
}

// --- completions ---

void Requester::complete(const SendRequest& request, ibv_wc_status status) noexcept {
  if (status == IBV_WC_SUCCESS && !request.signaled) return;
  ibv_wc completion{};
  completion.wr_id = request.id;
  completion.status = status;
  completion.opcode = IBV_WC_SEND;
  completion.byte_len = request.length;
  completion.qp_num = self_.value();
  completions_.push(completion, false);
}

void Requester::flush(ibv_wc_status first) noexcept {
  for (; !queue_.empty(); queue_.pop()) {
    complete(queue_[queue_.head()], first);
    first = IBV_WC_WR_FLUSH_ERR;
  }
  next_ = {queue_.head(), 0};
  begun_ = queue_.head();
  unacked_ = next_psn_ = sent_end_;
  under_way_ = 0;
  rnr_until_.reset();
}

}  // namespace ipoverbs::verbs::soft
