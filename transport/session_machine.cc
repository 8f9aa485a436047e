#include "transport/session_machine.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ipoverbs::transport {

namespace {
// Attempts are counted modulo 2^32: `a` is later than `b` if it is less than half a circle ahead.
bool later_attempt(std::uint32_t a, std::uint32_t b) {
  return a != b && a - b < std::uint32_t{1} << 31;
}
}  // namespace

std::string_view to_string(SessionState state) {
  static constexpr std::array<std::string_view, 4> kNames{"backoff", "dialling", "accepting",
                                                          "established"};
  return kNames.at(std::to_underlying(state));
}

SessionMachine::SessionMachine(NodeId own, const Timing& timing, TimePoint now)
    : own_(own),
      timing_(timing),
      since_(now),
      deadline_(now),
      backoff_(timing.backoff_min),
      patience_(timing.first_timeout) {}

void SessionMachine::enter(SessionState state, TimePoint now, Duration for_at_most) {
  state_ = state;
  since_ = now;
  deadline_ = now + for_at_most;
}

void SessionMachine::back_off(TimePoint now) {
  if (state_ != SessionState::Established) {
    patience_ = std::min(patience_ * 2, timing_.connect_timeout);
  }
  enter(SessionState::Backoff, now, backoff_);
  backoff_ = std::min(backoff_ * 2, timing_.backoff_max);
}

SessionMachine::Action SessionMachine::tick(TimePoint now) {
  if (now < deadline_) return Action::None;
  switch (state_) {
    case SessionState::Backoff:
      ++attempt_;
      enter(SessionState::Dialling, now, patience_);
      return Action::Dial;
    case SessionState::Dialling:
      on_failed("no answer in time", now);
      return Action::Drop;
    case SessionState::Accepting:
      on_failed("accepted, but the connection did not come up in time", now);
      return Action::Drop;
    case SessionState::Established:
      break;
  }
  deadline_ = TimePoint::max();
  return Action::None;
}

std::optional<RejectReason> SessionMachine::on_request(const Hello& hello, TimePoint now) {
  if (hello.node_id == own_) return RejectReason::Self;
  switch (state_) {
    case SessionState::Backoff:
      break;
    case SessionState::Dialling:
      if (own_ < hello.node_id) return RejectReason::Crossed;
      break;
    case SessionState::Accepting:
    case SessionState::Established:
      if (hello.node_id == peer_ && !later_attempt(hello.attempt, peer_attempt_)) {
        return RejectReason::Stale;
      }
      break;
  }
  peer_ = hello.node_id;
  peer_attempt_ = hello.attempt;
  enter(SessionState::Accepting, now, patience_);
  return std::nullopt;
}

void SessionMachine::on_established(const Hello& hello, TimePoint now) {
  peer_ = hello.node_id;
  peer_attempt_ = hello.attempt;
  enter(SessionState::Established, now, Duration{0});
  deadline_ = TimePoint::max();
  backoff_ = timing_.backoff_min;
  patience_ = timing_.first_timeout;
  ++established_count_;
}

void SessionMachine::on_failed(std::string why, TimePoint now) {
  if (state_ == SessionState::Backoff) return;
  last_error_ = std::move(why);
  back_off(now);
}

}  // namespace ipoverbs::transport
