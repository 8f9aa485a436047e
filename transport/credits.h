// Credits: how many messages each end may send, so that every one finds a receive and RNR never
// happens.
//
// Theory of operation. A credit is one message with packets. A receiver grants credits for receives
// that are posted; grants ride in frames and only ever add up. The receives of a worker's sessions
// are one pool:
//
//   - kInitialCredits for each session, posted when the session begins and granted in its hello,
//   - kControlReceives for each session, never granted: what Control messages consume, which need
//   no credit,
//   - options.receive_buffers for all, granted to whoever uses them.
//
// A receive queue has so many places and no more: what all share gives way to what sessions are
// promised, and a session for which nothing is left is refused.
//
// A session's window is what it may have outstanding. It begins at kInitialCredits; each time half
// of it has been used it doubles, up to an equal share of the pool among the sessions, and the used
// part is granted again as far as the pool has something free. A share that shrank because a
// session came is reached by not granting anew: nothing is taken back from a peer.
//
// Why kControlReceives are enough. Grants are sent when half a window can be granted, so while this
// side does not repost, the other side can have caused two of them; the keepalive is one more, and
// what tells of capabilities withdrawn, at most once a tick, the last. When the pool has less than
// half a window, a grant of its own is sent only to who has half of kInitialCredits left, or fewer:
// as much as it has used of those is always there to be granted. A side that stands still for
// seconds while its device acknowledges gets more keepalives than that: the device has them sent
// again (rnr_retry is endless, verbs/device.h) until it runs again or the dead time is over.
//
// Control messages need no credit, and each takes a receive that the sessions share: a peer that
// floods them takes what others were granted. ControlAllowance says how many a peer may send
// between two ticks: one for each message that it was sent in this tick and the one before, which
// is several times what its grants need, and kControlBurst, for keepalives that a stalled network
// held back and grants that were late. Who sends more ends its session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ipoverbs::transport {

inline constexpr std::uint32_t kInitialCredits = 8;   // messages
inline constexpr std::uint32_t kControlReceives = 4;  // messages
inline constexpr std::uint32_t kSessionReceives = kInitialCredits + kControlReceives;
inline constexpr std::uint32_t kControlBurst = 256;  // Control messages a tick without a cause

// How many places a receive queue should have, and how many of them all sessions may share.
struct ReceivePlan {
  std::uint32_t places = 0;
  std::uint32_t shared = 0;
};

// For `peers` with one session each, and an eighth of them and one more besides: while both ends
// dial, or where the peer has more workers. `shared` is what is asked for, `limit` what the
// device's queue can hold.
[[nodiscard]] constexpr ReceivePlan plan_receives(std::size_t peers, std::uint32_t shared,
                                                  std::uint32_t limit) noexcept {
  const std::uint64_t promised = (peers + peers / 8 + 1) * std::uint64_t{kSessionReceives};
  ReceivePlan plan;
  plan.places = static_cast<std::uint32_t>(std::min<std::uint64_t>(promised + shared, limit));
  plan.shared = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      shared, plan.places - std::min<std::uint64_t>(promised, plan.places)));
  return plan;
}

// What a worker has to grant.
class CreditPool {
 public:
  explicit CreditPool(ReceivePlan plan) noexcept : plan_(plan) {}
  // False, and nothing has changed, if the receives that a session is promised have no place.
  [[nodiscard]] bool session_joins() noexcept {
    const std::uint64_t promised = (sessions_ + std::uint64_t{1}) * kSessionReceives;
    if (promised + lent_ > plan_.places) return false;
    ++sessions_;
    return true;
  }
  // `outstanding`: what the session that leaves had granted; nobody will use it any more.
  void session_left(std::uint32_t outstanding) noexcept {
    --sessions_;
    const std::uint32_t borrowed =
        outstanding > kInitialCredits ? outstanding - kInitialCredits : 0;
    lent_ -= std::min(lent_, borrowed);
  }
  // The largest window of a session, in messages.
  [[nodiscard]] std::uint32_t share() const noexcept {
    return kInitialCredits + shared() / std::max(1U, sessions_);
  }
  [[nodiscard]] std::uint32_t available() const noexcept { return shared() - lent_; }
  // How many receives are to be posted for all sessions together.
  [[nodiscard]] std::uint32_t receives() const noexcept { return shared() + promised(); }
  void lend(std::uint32_t n) noexcept { lent_ += n; }
  void give_back(std::uint32_t n) noexcept { lent_ -= n; }

 private:
  [[nodiscard]] std::uint32_t promised() const noexcept { return sessions_ * kSessionReceives; }
  [[nodiscard]] std::uint32_t shared() const noexcept {
    return std::min(plan_.shared, plan_.places - promised());
  }

  ReceivePlan plan_;
  std::uint32_t lent_ = 0;
  std::uint32_t sessions_ = 0;
};

// The receiving side of one session.
class Grantor {
 public:
  explicit Grantor(CreditPool& pool) noexcept : pool_(&pool) {}

  // A message with packets arrived. False if it was sent without credit: the peer breaks the rules.
  [[nodiscard]] bool on_message() noexcept {
    if (outstanding_ == 0) return false;
    if (outstanding_ > kInitialCredits) pool_->give_back(1);
    --outstanding_;
    return true;
  }
  // Whether a message of its own is worth sending for the grant.
  [[nodiscard]] bool due() const noexcept {
    if (outstanding_ <= kInitialCredits / 2) return true;
    return outstanding_ <= window() / 2 && grantable(next_window()) >= window() / 2;
  }
  // Takes what can be granted now, at most 65535, to be written into a frame that will be sent.
  [[nodiscard]] std::uint16_t take() noexcept {
    if (outstanding_ <= window() / 2) window_ = next_window();
    const std::uint32_t n = std::min(grantable(window()), 65535U);
    const std::uint32_t before = std::max(outstanding_, kInitialCredits);
    outstanding_ += n;
    pool_->lend(std::max(outstanding_, kInitialCredits) - before);
    return static_cast<std::uint16_t>(n);
  }
  [[nodiscard]] std::uint32_t outstanding() const noexcept { return outstanding_; }
  [[nodiscard]] std::uint32_t window() const noexcept { return std::min(window_, pool_->share()); }

 private:
  [[nodiscard]] std::uint32_t next_window() const noexcept {
    return std::min(window_ * 2, pool_->share());
  }
  // What lies within the first kInitialCredits is the session's own; the rest comes from the pool.
  [[nodiscard]] std::uint32_t grantable(std::uint32_t window) const noexcept {
    if (outstanding_ >= window) return 0;
    const std::uint32_t own = outstanding_ < kInitialCredits ? kInitialCredits - outstanding_ : 0;
    return std::min(window - outstanding_, own + pool_->available());
  }

  CreditPool* pool_;
  std::uint32_t window_ = kInitialCredits;
  std::uint32_t outstanding_ = kInitialCredits;  // granted in the hello
};

// The Control messages that a session receives.
class ControlAllowance {
 public:
  // One came. `sent`: messages with packets that the session has sent, since it began. False if the
  // peer can have had no cause: it breaks the rules.
  [[nodiscard]] bool on_control(std::uint64_t sent) noexcept {
    return ++received_ <= kControlBurst + (sent - sent_before_);
  }
  void on_tick(std::uint64_t sent) noexcept {
    received_ = 0;
    sent_before_ = std::exchange(sent_at_tick_, sent);
  }

 private:
  std::uint64_t received_ = 0;      // since the last tick
  std::uint64_t sent_at_tick_ = 0;  // at the last tick
  std::uint64_t sent_before_ = 0;   // at the one before
};

}  // namespace ipoverbs::transport
