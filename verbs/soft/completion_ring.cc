#include "verbs/soft/completion_ring.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ipoverbs::verbs::soft {

CompletionRing::CompletionRing(std::uint32_t depth)
    : entries_(std::make_unique<ibv_wc[]>(depth)), depth_(depth) {
  assert(depth > 0);
}

void CompletionRing::push(const ibv_wc& completion, bool solicited) noexcept {
  if (tail_ - head_ == depth_) {
    ++overruns_;
    return;
  }
  entries_[tail_++ % depth_] = completion;
  solicited = solicited || completion.status != IBV_WC_SUCCESS;
  if (armed_ == Armed::Any || (armed_ == Armed::Solicited && solicited)) {
    event_ = true;
  }
}

std::uint32_t CompletionRing::pop(std::span<ibv_wc> out) noexcept {
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(tail_ - head_, out.size()));
  for (ibv_wc& completion : out.first(count)) completion = entries_[head_++ % depth_];
  return count;
}

void CompletionRing::arm(bool solicited_only) noexcept {
  if (!empty()) event_ = true;
  if (!solicited_only) {
    armed_ = Armed::Any;
  } else if (armed_ == Armed::No) {
    armed_ = Armed::Solicited;
  }
}

bool CompletionRing::take_event() noexcept {
  if (!std::exchange(event_, false) || empty()) return false;
  armed_ = Armed::No;
  return true;
}

}  // namespace ipoverbs::verbs::soft
