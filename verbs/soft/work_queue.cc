#include "verbs/soft/work_queue.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace ipoverbs::verbs::soft {

namespace {

// The list of a request whose num_sge was checked.
std::span<const ibv_sge> list_of(const ibv_sge* first, int count) {
  return {first, static_cast<std::size_t>(count)};
}

std::uint64_t total(std::span<const ibv_sge> sges) {
  return std::accumulate(sges.begin(), sges.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ibv_sge& sge) { return sum + sge.length; });
}

}  // namespace

SendQueue::SendQueue(std::uint32_t depth, std::uint32_t max_sge, std::uint32_t max_inline,
                     bool signal_all)
    : depth_(depth),
      max_sge_(std::max(max_sge, 1U)),
      max_inline_(max_inline),
      signal_all_(signal_all),
      requests_(depth),
      sges_(std::size_t{depth} * max_sge_),
      inline_(std::size_t{depth} * max_inline) {
  assert(depth > 0 && max_sge <= kMaxSendSge && max_inline <= kMaxInline);
}

SendRequest& SendQueue::operator[](RequestIndex index) noexcept {
  return requests_[index % depth_];
}

std::span<const ibv_sge> SendQueue::sges(RequestIndex index) const noexcept {
  const std::size_t slot = index % depth_;
  return std::span(sges_).subspan(slot * max_sge_, requests_[slot].sges);
}

int SendQueue::post(const ibv_send_wr& request, const MemoryTable& memory) noexcept {
  if (request.opcode != IBV_WR_SEND && request.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  if (request.num_sge < 0) return EINVAL;
  const bool copied = (request.send_flags & IBV_SEND_INLINE) != 0;
  const auto sges = static_cast<std::uint32_t>(request.num_sge);
  // Inline data is gathered while posting, so that its list may be as long as it likes.
  if (!copied && sges > max_sge_) return EINVAL;
  if (copied && total(list_of(request.sg_list, request.num_sge)) > max_inline_) return EINVAL;
  if (tail_ - head_ == depth_) return ENOMEM;
  SendRequest& slot = requests_[tail_ % depth_];
  slot = {};
  slot.id = request.wr_id;
  slot.signaled = signal_all_ || (request.send_flags & IBV_SEND_SIGNALED) != 0;
  slot.solicited = (request.send_flags & IBV_SEND_SOLICITED) != 0;
  slot.with_immediate = request.opcode == IBV_WR_SEND_WITH_IMM;
  if (slot.with_immediate)
    slot.immediate = std::bit_cast<decltype(slot.immediate)>(request.imm_data);
  take_data(request, slot, memory);
  ++tail_;
  return 0;
}

void SendQueue::take_data(const ibv_send_wr& request, SendRequest& slot,
                          const MemoryTable& memory) noexcept {
  const auto list = list_of(request.sg_list, request.num_sge);
  const std::uint64_t length = total(list);
  slot.length = static_cast<std::uint32_t>(std::min(length, kMaxMessage));
  if (length > kMaxMessage) slot.defect = IBV_WC_LOC_LEN_ERR;
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    take_inline(request);
    slot.sges = 1;
    return;
  }
  const bool registered =
      std::ranges::all_of(list, [&](const ibv_sge& sge) { return memory.covers(sge); });
  if (!registered) slot.defect = IBV_WC_LOC_PROT_ERR;
  slot.sges = static_cast<std::uint32_t>(list.size());
  std::ranges::copy(list, std::span(sges_).subspan(tail_ % depth_ * max_sge_).begin());
}

void SendQueue::take_inline(const ibv_send_wr& request) noexcept {
  const std::size_t slot = tail_ % depth_;
  const std::span room = std::span(inline_).subspan(slot * max_inline_, max_inline_);
  std::size_t filled = 0;
  for (const ibv_sge& sge : list_of(request.sg_list, request.num_sge)) {
    if (sge.length == 0) continue;
    std::memcpy(room.subspan(filled).data(), std::bit_cast<const std::byte*>(sge.addr), sge.length);
    filled += sge.length;
  }
  sges_[slot * max_sge_] = {.addr = std::bit_cast<std::uint64_t>(room.data()),
                            .length = static_cast<std::uint32_t>(filled),
                            .lkey = 0};
}

ReceiveQueue::ReceiveQueue(std::uint32_t depth, std::uint32_t max_sge, Order order)
    : depth_(depth), max_sge_(max_sge), order_(order), requests_(depth) {
  assert(depth > 0 && max_sge <= kMaxReceiveSge);
}

int ReceiveQueue::post(const ibv_recv_wr& request, const MemoryTable& memory) noexcept {
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > max_sge_) return EINVAL;
  if (tail_ - head_ == depth_) return ENOMEM;
  const auto list = list_of(request.sg_list, request.num_sge);
  ReceiveRequest& slot = requests_[tail_ % depth_];
  slot.id = request.wr_id;
  slot.capacity = total(list);
  slot.sges = static_cast<std::uint32_t>(list.size());
  slot.registered =
      std::ranges::all_of(list, [&](const ibv_sge& sge) { return memory.covers(sge); });
  std::ranges::copy(list, slot.sge.begin());
  ++tail_;
  return 0;
}

}  // namespace ipoverbs::verbs::soft
