#include "verbs/soft/soft_queues.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::verbs::soft {

SoftMemoryRegion::SoftMemoryRegion(MemoryTable& table, std::span<std::byte> memory)
    : table_(table) {
  const auto key = table.add(memory);
  if (!key) {
    throw SystemError(ENOMEM, fmt::format("register {} bytes with the software device, which has "
                                          "{} regions already",
                                          memory.size(), MemoryTable::kSlots));
  }
  key_ = *key;
}

SoftCompletionQueue::SoftCompletionQueue(DeviceParts& device, std::uint32_t depth)
    : device_(device), slot_(device.ports.acquire()) {
  try {
    wire_.emplace(device.ports.socket(slot_), device.local, device.random());
    if (!device.faults.segmentation) wire_->disable_segmentation();
    if (!device.faults.rules.empty()) faulty_.emplace(*wire_, device.faults, slot_);
    watch(epoll_, 0);
    Wire& wire = faulty_ ? static_cast<Wire&>(*faulty_) : *wire_;
    EngineObserver& observer = *this;
    Bell& bell = *this;
    worker_ = std::make_unique<Worker>(device.context, wire, observer, bell, device.time, depth);
  } catch (...) {
    device.ports.give_back(slot_);
    throw;
  }
  device.switchboard.attach(slot_, *worker_);
  device.queues.push_back(this);
}

SoftCompletionQueue::~SoftCompletionQueue() {
  std::erase(device_.queues, this);
  device_.switchboard.detach(slot_);
  device_.ports.give_back(slot_);
}

void SoftCompletionQueue::watch(Epoll& epoll, std::uint32_t tag) const {
  for (const int fd : {device_.ports.socket(slot_), timer_.fd(), bell_.fd()}) epoll.add(fd, tag);
}

void SoftCompletionQueue::consume_events() noexcept {
  worker_->disarm();
  // What the socket has is taken by polling. The others are read only if they can be readable.
  if (rung_.exchange(false, std::memory_order_acquire)) bell_.silence();
  if (alarm_ && *alarm_ <= device_.time.now()) {
    timer_.consume();
    alarm_.reset();
  }
}

std::uint64_t SoftCompletionQueue::window_limit() const {
  // The far end's buffer is taken to be like ours. It holds what several queue pairs send, and what
  // is being copied out still counts, so that one takes half of it, and no more than keeps the
  // caches warm.
  constexpr std::uint64_t kMost = std::uint64_t{2} << 20;
  return std::min<std::uint64_t>(device_.ports.buffer(slot_) / 2, kMost);
}

void SoftCompletionQueue::on_communication(QpNumber qp) noexcept {
  device_.switchboard.notify({qp, IBV_WC_SUCCESS});
}

void SoftCompletionQueue::on_failure(QpNumber qp, ibv_wc_status status) noexcept {
  device_.switchboard.notify({qp, status});
}

bool SoftCompletionQueue::on_stray(const Received& datagram, QpNumber qp) noexcept {
  return slot_of(qp) != slot_ && device_.switchboard.forward(datagram, qp);
}

void SoftCompletionQueue::ring() noexcept {
  bell_.ring();
  rung_.store(true, std::memory_order_release);
}

void SoftCompletionQueue::set_alarm(TimePoint when) noexcept {
  alarm_ = when;
  timer_.set(when);
}

}  // namespace ipoverbs::verbs::soft
