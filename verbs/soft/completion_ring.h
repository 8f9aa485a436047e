// The completions of one completion queue, in order, and whether somebody asked to be told.
//
// Fixed size, one thread. Semantics of ibv_poll_cq(3) and ibv_req_notify_cq(3), with one event more
// than asked for in one case: arming a queue that is not empty rings at once, so that a caller who
// polled too few before going to sleep is not left there. And with one less: completions that the
// poll which made them has taken out as well ring nobody, and the queue stays armed.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <span>

namespace ipoverbs::verbs::soft {

class CompletionRing {
 public:
  // `depth` in completions, at least 1.
  explicit CompletionRing(std::uint32_t depth);

  // `solicited`: the sender set the SE bit; errors always count as solicited. A full ring loses the
  // completion and is overrun from then on (the specification's CQ overrun, a fatal error).
  void push(const ibv_wc& completion, bool solicited) noexcept;
  // Moves up to out.size() completions out; returns how many.
  std::uint32_t pop(std::span<ibv_wc> out) noexcept;
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }

  // Wants one event at the next completion, or at the next solicited one. Wanting any outlives
  // wanting solicited ones.
  void arm(bool solicited_only) noexcept;
  // Whether completions are there that make an event; asking takes it. Asked when a poll or a post
  // ends.
  [[nodiscard]] bool take_event() noexcept;
  // Completions lost.
  [[nodiscard]] std::uint64_t overruns() const noexcept { return overruns_; }

 private:
  enum class Armed : std::uint8_t { No, Solicited, Any };
  std::unique_ptr<ibv_wc[]> entries_;
  std::uint32_t depth_;
  std::uint64_t head_ = 0;  // completions taken out, ever
  std::uint64_t tail_ = 0;  // completions put in, ever
  std::uint64_t overruns_ = 0;
  Armed armed_ = Armed::No;
  bool event_ = false;  // one was pushed that makes an event
};

}  // namespace ipoverbs::verbs::soft
