// Memory regions, completion queues and shared receive queues over libibverbs.
#pragma once

#include "verbs/device.h"
#include "verbs/rdma/owners.h"

namespace ipoverbs::verbs {

class RdmaMemoryRegion final : public MemoryRegion {
 public:
  // Local writes only: nothing here is a target of RDMA. Throws as Device::register_memory.
  RdmaMemoryRegion(ibv_pd* pd, std::span<std::byte> memory);
  [[nodiscard]] LocalKey local_key() const override { return LocalKey(mr_->lkey); }

 private:
  MemoryRegionOwner mr_;
};

// A completion queue with a channel of its own, so that its worker wakes for nobody else's.
class RdmaCompletionQueue final : public CompletionQueue {
 public:
  RdmaCompletionQueue(ibv_context* context, std::uint32_t depth);
  RdmaCompletionQueue(const RdmaCompletionQueue&) = delete;
  RdmaCompletionQueue& operator=(const RdmaCompletionQueue&) = delete;
  ~RdmaCompletionQueue() override;

  [[nodiscard]] ibv_cq* raw() const override { return cq_.get(); }
  [[nodiscard]] int fd() const override { return channel_->fd; }
  void consume_events() noexcept override;

 private:
  CompletionChannelOwner channel_;
  CompletionQueueOwner cq_;
  // Events taken and not yet acknowledged. Acknowledging takes a mutex, so it is done in batches;
  // ibv_destroy_cq waits for all of them (ibv_get_cq_event(3)).
  unsigned unacknowledged_ = 0;
};

class RdmaSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  RdmaSharedReceiveQueue(ibv_pd* pd, std::uint32_t depth);
  [[nodiscard]] ibv_srq* raw() const override { return srq_.get(); }

 private:
  SharedReceiveQueueOwner srq_;
};

}  // namespace ipoverbs::verbs
