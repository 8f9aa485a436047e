// verbs::Device and what it makes, as thin owners of the state in Queues and Exchange.
#include "tests/support/loopback_device.h"

#include <cassert>
#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "tests/support/loopback_fabric.h"

namespace ipoverbs::support {
namespace {

Fabric& fabric_of(const ibv_context* context) {
  return *static_cast<const LoopbackContext*>(context)->fabric;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  Fabric& fabric = fabric_of(qp->context);
  const MutexLock lock(fabric.mutex);
  return fabric.queues.post_send(*static_cast<LoopbackQp*>(qp), request, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  Fabric& fabric = fabric_of(qp->context);
  const MutexLock lock(fabric.mutex);
  return fabric.queues.post_receive(*static_cast<LoopbackQp*>(qp), request, bad);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  Fabric& fabric = fabric_of(srq->context);
  const MutexLock lock(fabric.mutex);
  return fabric.queues.post_shared_receive(*static_cast<LoopbackSrq*>(srq), request, bad);
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  Fabric& fabric = fabric_of(cq->context);
  const MutexLock lock(fabric.mutex);
  return Queues::poll(*static_cast<LoopbackCq*>(cq), count, completions);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  Fabric& fabric = fabric_of(cq->context);
  const MutexLock lock(fabric.mutex);
  return Queues::arm(*static_cast<LoopbackCq*>(cq), solicited_only != 0);
}

// `wanted` within 1..`limit`, or EINVAL.
void require_within(std::uint32_t wanted, std::uint32_t limit, const std::string& tried) {
  if (wanted == 0 || wanted > limit) throw SystemError(EINVAL, tried);
}

void require_present(const LoopbackContext& context, const std::string& tried) {
  if (context.removed) throw SystemError(ENODEV, tried);
}

class Region final : public verbs::MemoryRegion {
 public:
  Region(LoopbackContext& context, std::uint32_t key) : context_(context), key_(key) {}
  ~Region() override {
    const MutexLock lock(context_.fabric->mutex);
    context_.regions.erase(key_);
    --context_.fabric->census.live;
  }
  [[nodiscard]] verbs::LocalKey local_key() const override { return verbs::LocalKey(key_); }

 private:
  LoopbackContext& context_;
  std::uint32_t key_;
};

class Completions final : public verbs::CompletionQueue {
 public:
  Completions(LoopbackContext& context, std::uint32_t depth) : fabric_(*context.fabric) {
    cq_.context = &context;
    cq_.depth = depth;
    cq_.cqe = static_cast<int>(depth);
  }
  ~Completions() override {
    const MutexLock lock(fabric_.mutex);
    assert(!fabric_.queues.in_use(&cq_) && "queue pairs outlive their completion queue");
    --fabric_.census.live;
  }
  [[nodiscard]] ibv_cq* raw() const override { return &cq_; }
  [[nodiscard]] int fd() const override { return cq_.channel_event.fd(); }
  void consume_events() noexcept override { cq_.channel_event.silence(); }

 private:
  Fabric& fabric_;
  mutable LoopbackCq cq_;  // raw() hands out what the verbs write to
};

class SharedReceives final : public verbs::SharedReceiveQueue {
 public:
  SharedReceives(LoopbackContext& context, std::uint32_t depth) : fabric_(*context.fabric) {
    srq_.context = &context;
    srq_.queue.slots->capacity = depth;
  }
  ~SharedReceives() override {
    const MutexLock lock(fabric_.mutex);
    assert(!fabric_.queues.in_use(&srq_) && "queue pairs outlive their shared receive queue");
    --fabric_.census.live;
  }
  [[nodiscard]] ibv_srq* raw() const override { return &srq_; }

 private:
  Fabric& fabric_;
  mutable LoopbackSrq srq_;
};

class LoopbackConnection final : public verbs::Connection {
 public:
  // Holding the lock: the connection is the identity's owner from now on.
  LoopbackConnection(Fabric& fabric, std::shared_ptr<Identity> id)
      : fabric_(fabric), id_(std::move(id)) {
    id_->owner = this;
  }
  ~LoopbackConnection() override {
    const MutexLock lock(fabric_.mutex);
    fabric_.census.live -= id_->qp ? 2U : 1U;
    fabric_.exchange.destroy(id_);
  }

  void create_queue_pair(const verbs::QueuePairConfig& config) override;
  [[nodiscard]] ibv_qp* queue_pair() const override { return id_->qp.get(); }
  void connect(std::span<const std::byte> private_data) override {
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.connect(id_, private_data);
  }
  void accept(std::span<const std::byte> private_data) override {
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.accept(id_, private_data);
  }
  void reject(std::span<const std::byte> private_data) override {
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.reject(id_, private_data);
  }
  void disconnect() noexcept override {
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.disconnect(id_);
  }
  [[nodiscard]] Endpoint remote() const override { return id_->remote; }
  [[nodiscard]] verbs::QueuePairAttributes attributes() const override;

 private:
  Fabric& fabric_;
  std::shared_ptr<Identity> id_;
};

void LoopbackConnection::create_queue_pair(const verbs::QueuePairConfig& config) {
  const MutexLock lock(fabric_.mutex);
  LoopbackContext& context = id_->host->context;
  const verbs::Capabilities& can = context.capabilities;
  const std::string tried =
      fmt::format("create a queue pair of {} sends with {} SGEs and {} receives", config.send_depth,
                  config.send_sge, config.receive_depth);
  require_present(context, tried);
  const bool in_turn =
      id_->state == Identity::State::Resolved || id_->state == Identity::State::Requested;
  if (!in_turn || id_->qp || config.completion_queue == nullptr) throw SystemError(EINVAL, tried);
  require_within(config.send_depth, can.max_qp_wr, tried);
  require_within(config.send_sge, can.max_send_sge, tried);
  if (config.shared_receive_queue == nullptr) {
    require_within(config.receive_depth, can.max_qp_wr, tried);
  }
  fabric_.census.create(tried);
  auto qp = std::make_unique<LoopbackQp>();
  qp->context = &context;
  qp->send_cq = qp->recv_cq = config.completion_queue->raw();
  qp->srq = config.shared_receive_queue != nullptr ? config.shared_receive_queue->raw() : nullptr;
  qp->qp_type = IBV_QPT_RC;
  qp->send_slots->capacity = config.send_depth;
  qp->max_send_sge = config.send_sge;
  qp->own.slots->capacity = config.receive_depth;
  qp->remote = id_->remote.address;
  fabric_.queues.add(*qp);
  id_->qp = std::move(qp);
}

verbs::QueuePairAttributes LoopbackConnection::attributes() const {
  const MutexLock lock(fabric_.mutex);
  if (!id_->qp) throw SystemError(EINVAL, "query a queue pair that was not created");
  const LoopbackQp& qp = *id_->qp;
  verbs::PathMtu mtu = qp.device().capabilities.active_mtu;
  if (qp.peer != nullptr) mtu = std::min(mtu, qp.peer->device().capabilities.active_mtu);
  const verbs::ConnectionTimers timers;
  return {verbs::QpNumber(qp.qp_num), mtu, timers.ack_timeout, timers.min_rnr_timer};
}

class LoopbackDevice final : public verbs::Device {
 public:
  LoopbackDevice(Fabric& fabric, const IpAddress& underlay, const LoopbackOptions& options)
      : fabric_(fabric) {
    LoopbackContext& context = host_.context;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    context.ops.post_srq_recv = post_srq_recv;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = req_notify_cq;
    // The inline verbs that would look for an extended context in front of this one give up.
    context.abi_compat = nullptr;
    context.fabric = &fabric;
    context.underlay = underlay;
    context.capabilities = options.capabilities;
    context.forget_completions_of_destroyed = options.forget_completions_of_destroyed;
    host_.fail_unknown_at_once = options.fail_unknown_at_once;
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.add(host_);
  }
  ~LoopbackDevice() override {
    const MutexLock lock(fabric_.mutex);
    assert(host_.context.regions.empty() && "memory regions outlive the device");
    fabric_.exchange.remove(host_);
  }

  [[nodiscard]] const verbs::Capabilities& capabilities() const override {
    return host_.context.capabilities;
  }
  [[nodiscard]] std::unique_ptr<verbs::MemoryRegion> register_memory(
      std::span<std::byte> memory) override;
  [[nodiscard]] std::unique_ptr<verbs::CompletionQueue> create_completion_queue(
      std::uint32_t depth) override;
  [[nodiscard]] std::unique_ptr<verbs::SharedReceiveQueue> create_shared_receive_queue(
      std::uint32_t depth) override;
  void listen(std::uint16_t port) override {
    const MutexLock lock(fabric_.mutex);
    fabric_.exchange.listen(host_, port);
  }
  [[nodiscard]] std::unique_ptr<verbs::Connection> dial(const verbs::RemoteAddress& remote,
                                                        const verbs::PathOptions&) override {
    const MutexLock lock(fabric_.mutex);
    auto id = fabric_.exchange.dial(host_, remote.endpoint);
    ++fabric_.census.live;
    return std::make_unique<LoopbackConnection>(fabric_, std::move(id));
  }
  [[nodiscard]] int event_fd() const override { return host_.bell.fd(); }
  int process_events(verbs::EventHandler& handler) override;

 private:
  [[nodiscard]] std::size_t begin_events();
  // False if there is none left.
  bool take(verbs::Event& event, PendingEvent& pending);

  Fabric& fabric_;
  LoopbackHost host_;
  std::uint32_t next_key_ = 0x100;
};

std::unique_ptr<verbs::MemoryRegion> LoopbackDevice::register_memory(std::span<std::byte> memory) {
  const MutexLock lock(fabric_.mutex);
  const std::string tried =
      fmt::format("register {} bytes with {}", memory.size(), capabilities().device);
  require_present(host_.context, tried);
  if (memory.empty()) throw SystemError(EINVAL, tried);
  fabric_.census.create(tried);
  const std::uint32_t key = next_key_++;
  host_.context.regions.emplace(key, memory);
  return std::make_unique<Region>(host_.context, key);
}

std::unique_ptr<verbs::CompletionQueue> LoopbackDevice::create_completion_queue(
    std::uint32_t depth) {
  const MutexLock lock(fabric_.mutex);
  const std::string tried = fmt::format("create a completion queue of {}", depth);
  require_present(host_.context, tried);
  require_within(depth, capabilities().max_cqe, tried);
  fabric_.census.create(tried);
  return std::make_unique<Completions>(host_.context, depth);
}

std::unique_ptr<verbs::SharedReceiveQueue> LoopbackDevice::create_shared_receive_queue(
    std::uint32_t depth) {
  const MutexLock lock(fabric_.mutex);
  const std::string tried = fmt::format("create a shared receive queue of {}", depth);
  require_present(host_.context, tried);
  if (!capabilities().has_srq()) throw SystemError(EOPNOTSUPP, tried);
  require_within(depth, capabilities().max_srq_wr, tried);
  fabric_.census.create(tried);
  return std::make_unique<SharedReceives>(host_.context, depth);
}

std::size_t LoopbackDevice::begin_events() {
  const MutexLock lock(fabric_.mutex);
  host_.bell.silence();
  return host_.events.size();
}

bool LoopbackDevice::take(verbs::Event& event, PendingEvent& pending) {
  const MutexLock lock(fabric_.mutex);
  if (host_.events.empty()) return false;
  pending = fabric_.exchange.take_event(host_);
  event.kind = pending.kind;
  event.private_data = pending.private_data;
  event.detail = pending.detail;
  event.status = pending.status;
  if (pending.kind == verbs::EventKind::ConnectRequest) {
    ++fabric_.census.live;
    event.incoming = std::make_unique<LoopbackConnection>(fabric_, pending.identity);
  } else if (pending.identity) {
    event.connection = pending.identity->owner;
  }
  return true;
}

// Those that the handler's own doing brings wait for the next call, with the descriptor readable.
int LoopbackDevice::process_events(verbs::EventHandler& handler) {
  int handled = 0;
  for (std::size_t left = begin_events(); left > 0; --left) {
    PendingEvent pending;
    verbs::Event event;
    if (!take(event, pending)) break;
    handler.on_event(event);
    ++handled;
  }
  return handled;
}

}  // namespace

std::unique_ptr<verbs::Device> make_loopback_device(Fabric& fabric, const IpAddress& underlay,
                                                    const LoopbackOptions& options) {
  return std::make_unique<LoopbackDevice>(fabric, underlay, options);
}

}  // namespace ipoverbs::support
