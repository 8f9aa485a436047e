#include "tests/support/loopback_device.h"
#include "tests/support/loopback_fabric.h"

namespace ipoverbs::support {

verbs::Capabilities loopback_capabilities() {
  verbs::Capabilities can;
  can.device = "loopback";
  can.provider = "loopback";
  can.link = "RoCE";
  can.max_qp_wr = 16384;
  can.max_cqe = 65536;
  can.max_send_sge = 16;
  can.max_recv_sge = 16;
  can.max_srq_wr = 32768;
  can.max_srq_sge = 16;
  can.max_message = std::uint64_t{1} << 30U;
  can.active_mtu = verbs::PathMtu(4096);
  return can;
}

LoopbackNetwork::LoopbackNetwork(Delivery delivery) : fabric_(std::make_unique<Fabric>()) {
  const MutexLock lock(fabric_->mutex);
  fabric_->queues.set_manual(delivery == Delivery::Manual);
}

LoopbackNetwork::~LoopbackNetwork() = default;

std::unique_ptr<verbs::Device> LoopbackNetwork::open(IpAddress underlay, LoopbackOptions options) {
  return make_loopback_device(*fabric_, underlay, options);
}

std::size_t LoopbackNetwork::deliver(std::size_t n) {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.deliver(n, [](const LoopbackQp&) { return true; });
}

std::size_t LoopbackNetwork::deliver_between(const IpAddress& from, const IpAddress& to,
                                             std::size_t n) {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.deliver(
      n, [&](const LoopbackQp& qp) { return qp.device().underlay == from && qp.remote == to; });
}

void LoopbackNetwork::set_delivery(Delivery delivery) {
  const MutexLock lock(fabric_->mutex);
  fabric_->queues.set_manual(delivery == Delivery::Manual);
}

std::uint64_t LoopbackNetwork::rnr_count() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.rnr_count();
}

std::size_t LoopbackNetwork::posted_receives(verbs::QpNumber number) const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->exchange.owner_of(number.value())->qp->receives().posted.size();
}

std::uint64_t LoopbackNetwork::overrun_count() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.overrun_count();
}

void LoopbackNetwork::partition(const IpAddress& a, const IpAddress& b) {
  const MutexLock lock(fabric_->mutex);
  fabric_->partitions.cut(a, b);
}

void LoopbackNetwork::heal(const IpAddress& a, const IpAddress& b) {
  const MutexLock lock(fabric_->mutex);
  fabric_->partitions.heal(a, b);
  // The connection managers first: who says that it leaves spares its peer's sends the error.
  fabric_->exchange.retry();
  fabric_->queues.retry();
}

void LoopbackNetwork::remove_device(const IpAddress& underlay) {
  const MutexLock lock(fabric_->mutex);
  fabric_->exchange.remove_device(underlay);
}

void LoopbackNetwork::fail_creation(std::uint64_t nth) {
  const MutexLock lock(fabric_->mutex);
  fabric_->census.fail_in = nth;
}

std::uint64_t LoopbackNetwork::creation_count() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->census.created;
}

std::size_t LoopbackNetwork::live_objects() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->census.live;
}

std::size_t LoopbackNetwork::live_devices() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->exchange.host_count();
}

std::vector<verbs::QpNumber> LoopbackNetwork::queue_pairs(const IpAddress& local,
                                                          const IpAddress& remote) const {
  const MutexLock lock(fabric_->mutex);
  std::vector<verbs::QpNumber> numbers;
  for (const std::uint32_t number : fabric_->exchange.queue_pairs(local, remote)) {
    numbers.emplace_back(number);
  }
  return numbers;
}

void LoopbackNetwork::break_queue_pair(verbs::QpNumber number, ibv_wc_status status) {
  const MutexLock lock(fabric_->mutex);
  fabric_->queues.fail(*fabric_->exchange.owner_of(number.value())->qp, status);
}

void LoopbackNetwork::report(const IpAddress& underlay, verbs::EventKind kind,
                             const std::string& detail) {
  const MutexLock lock(fabric_->mutex);
  fabric_->exchange.report(underlay, kind, detail);
}

void LoopbackNetwork::report(verbs::QpNumber number, verbs::EventKind kind,
                             const std::string& detail) {
  const MutexLock lock(fabric_->mutex);
  fabric_->exchange.report(number.value(), kind, detail);
}

}  // namespace ipoverbs::support
