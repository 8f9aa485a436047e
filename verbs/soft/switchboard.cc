#include "verbs/soft/switchboard.h"

#include <utility>

namespace ipoverbs::verbs::soft {

void Switchboard::attach(unsigned slot, Worker& worker) {
  const std::scoped_lock lock(mutex_);
  workers_.at(slot) = &worker;
}

void Switchboard::detach(unsigned slot) {
  const std::scoped_lock lock(mutex_);
  workers_.at(slot) = nullptr;
}

std::vector<Notice> Switchboard::take() {
  bell_.silence();
  const std::scoped_lock lock(mutex_);
  return std::exchange(notices_, {});
}

void Switchboard::notify(const Notice& notice) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    notices_.push_back(notice);
  }
  bell_.ring();
}

bool Switchboard::forward(const Received& datagram, QpNumber qp) noexcept {
  const std::scoped_lock lock(mutex_);
  Worker* const worker = workers_[slot_of(qp)];
  if (worker == nullptr) return false;
  worker->hand_over([this, copy = std::vector(datagram.bytes.begin(), datagram.bytes.end()),
                     source = datagram.source,
                     traffic_class = datagram.traffic_class](Engine& engine) {
    engine.receive({copy, 0, source, traffic_class}, time_.now());
  });
  return true;
}

}  // namespace ipoverbs::verbs::soft
