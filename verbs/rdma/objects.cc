#include "verbs/rdma/objects.h"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fd.h"
#include "verbs/rdma/memlock.h"

namespace ipoverbs::verbs {

namespace {
constexpr unsigned kAcknowledgeBatch = 64;

std::string on_device(const ibv_context* context) {
  return fmt::format("on {}", ibv_get_device_name(context->device));
}
}  // namespace

RdmaMemoryRegion::RdmaMemoryRegion(ibv_pd* pd, std::span<std::byte> memory)
    : mr_(ibv_reg_mr(pd, memory.data(), memory.size(), int{IBV_ACCESS_LOCAL_WRITE})) {
  if (mr_) return;
  throw_allocation_error(
      errno, fmt::format("register {} bytes of memory {}", memory.size(), on_device(pd->context)),
      memory.size());
}

RdmaCompletionQueue::RdmaCompletionQueue(ibv_context* context, std::uint32_t depth)
    : channel_(ibv_create_comp_channel(context)) {
  if (!channel_) {
    throw SystemError(errno, fmt::format("create a completion channel {}", on_device(context)));
  }
  set_nonblocking(channel_->fd);
  cq_.reset(ibv_create_cq(context, static_cast<int>(depth), nullptr, channel_.get(), 0));
  if (!cq_) {
    throw_allocation_error(
        errno, fmt::format("create a completion queue of {} {}", depth, on_device(context)), 0);
  }
}

RdmaCompletionQueue::~RdmaCompletionQueue() {
  if (unacknowledged_ != 0) ibv_ack_cq_events(cq_.get(), unacknowledged_);
}

void RdmaCompletionQueue::consume_events() noexcept {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) ++unacknowledged_;
  if (unacknowledged_ >= kAcknowledgeBatch) {
    ibv_ack_cq_events(cq_.get(), unacknowledged_);
    unacknowledged_ = 0;
  }
}

RdmaSharedReceiveQueue::RdmaSharedReceiveQueue(ibv_pd* pd, std::uint32_t depth) {
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = depth;
  attr.attr.max_sge = 1;
  srq_.reset(ibv_create_srq(pd, &attr));
  if (!srq_) {
    throw_allocation_error(
        errno, fmt::format("create a shared receive queue of {} {}", depth, on_device(pd->context)),
        0);
  }
}

}  // namespace ipoverbs::verbs
