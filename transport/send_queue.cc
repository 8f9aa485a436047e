#include "transport/send_queue.h"

#include <algorithm>
#include <bit>

namespace ipoverbs::transport {

SendQueue::SendQueue(ibv_qp* queue_pair, LinkId id, const Limits& limits, SlabPool& slabs,
                     DoorbellSizes& sizes, std::uint32_t first)
    : queue_pair_(queue_pair),
      id_(id),
      limits_(limits),
      slabs_(slabs),
      sizes_(sizes),
      ring_(std::bit_ceil(limits.depth)),
      pins_(slabs.size()),
      head_(first),
      tail_(first) {
  limits_.max_gather = std::clamp(limits.max_gather, 1U, kMaxGather);
  limits_.messages_per_doorbell = std::clamp(limits.messages_per_doorbell, 1U, kMaxChain);
  for (std::uint32_t i = 0; i < kMaxChain; ++i) {
    requests_[i].sg_list = chain_[i].gather.data();
    requests_[i].opcode = IBV_WR_SEND;
  }
}

SendQueue::~SendQueue() { abandon(); }

void SendQueue::abandon() noexcept {
  while (tail_ != head_) give_back(place(tail_++));
  staged_ = 0;
  open_ = false;
}

}  // namespace ipoverbs::transport
