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
  return fabric_->queues.deliver(n);
}

std::uint64_t LoopbackNetwork::rnr_count() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.rnr_count();
}

std::uint64_t LoopbackNetwork::overrun_count() const {
  const MutexLock lock(fabric_->mutex);
  return fabric_->queues.overrun_count();
}

}  // namespace ipoverbs::support
