// SessionMachine: what happens next to one session between two nodes. It does no I/O and reads no
// clock.
//
// Theory of operation. A session is one queue pair, numbered by `index`; both nodes dial it and one
// connection is kept. At any time the machine knows of at most one connection: the one that it
// dials, that it accepts, or that is established.
//
//                       tick: time is up
//          +--------+ ------------------> +----------+
//          | Backoff|                     | Dialling | -- established --> +-------------+
//          +--------+ <-- failed, time -- +----------+                    | Established |
//             ^  |                             | request that wins         +-------------+
//             |  | request                     v                             ^      |
//             |  +---------------------> +-----------+ ----- established ----+      |
//             +------ failed, time ----- | Accepting | <-- request that is newer ---+
//             |                          +-----------+                              |
//             +------------------- disconnected, failed, dead ----------------------+
//
// Both dial at once: the connection dialled by the node with the numerically smaller node id is
// kept (the shape of RFC 4755, section 3.3). So a request that crosses our dialling is accepted,
// and our own attempt abandoned, if the peer's node id is the smaller one; otherwise it is refused
// as Crossed.
//
// Old and new. Each node counts its dials of a session, and tells the count in every request and
// acceptance. A request that meets an established session is from before it (it crossed) if its
// count is not greater than the one that the peer told when the session was made, and is refused as
// Stale; if it is greater, or the node id is another (the peer was started anew), the peer has lost
// the session and the request replaces it.
//
// Timers: Dialling and Accepting are bounded by first_timeout, doubled with each failure in a row
// up to connect_timeout: a connection manager whose only request was lost repeats it after seconds
// (the kernel's after 4 to 6), so a new attempt is the quicker repetition. Backoff begins at
// backoff_min, doubles with each failure in a row up to backoff_max, and is begun again at
// backoff_min after a session stood.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/clock.h"
#include "transport/hello.h"

namespace ipoverbs::transport {

enum class SessionState : std::uint8_t { Backoff, Dialling, Accepting, Established };
[[nodiscard]] std::string_view to_string(SessionState state);

class SessionMachine {
 public:
  struct Timing {
    Duration first_timeout;    // of the first attempt in a row
    Duration connect_timeout;  // of later ones, each twice the one before, at most
    Duration backoff_min;
    Duration backoff_max;
  };

  // Begins in Backoff with its time up: the first tick dials.
  SessionMachine(NodeId own, const Timing& timing, TimePoint now);

  // What the owner is to do.
  enum class Action : std::uint8_t {
    None,
    Dial,  // begin an attempt numbered attempt()
    Drop,  // destroy the connection that there is
  };
  [[nodiscard]] Action tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const { return deadline_; }

  // A request came in. Accept: destroy the connection that there is, if any, and accept this one.
  // Otherwise refuse with the reason; nothing has changed.
  [[nodiscard]] std::optional<RejectReason> on_request(const Hello& hello, TimePoint now);
  // The connection is up. `hello` is the far end's: from the acceptance where we dialled, from the
  // request where we accepted.
  void on_established(const Hello& hello, TimePoint now);
  // The connection failed, was refused, or is gone: it is to be destroyed. In Backoff: nothing.
  void on_failed(std::string why, TimePoint now);

  [[nodiscard]] SessionState state() const { return state_; }
  [[nodiscard]] std::uint32_t attempt() const { return attempt_; }
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  [[nodiscard]] std::uint64_t established_count() const { return established_count_; }
  [[nodiscard]] TimePoint since() const { return since_; }

 private:
  void enter(SessionState state, TimePoint now, Duration for_at_most);
  void back_off(TimePoint now);

  NodeId own_;
  Timing timing_;
  SessionState state_ = SessionState::Backoff;
  TimePoint since_;
  TimePoint deadline_;
  Duration backoff_;
  Duration patience_;               // of the next attempt
  std::uint32_t attempt_ = 0;       // dials of ours
  NodeId peer_;                     // of the connection that is Accepting or Established
  std::uint32_t peer_attempt_ = 0;  // the peer's count, as it told for that connection
  std::string last_error_;
  std::uint64_t established_count_ = 0;
};

}  // namespace ipoverbs::transport
