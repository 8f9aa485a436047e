#include "verbs/rdma/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/rdma/address.h"
#include "verbs/rdma/objects.h"

namespace ipoverbs::verbs {

namespace {
constexpr int kBacklog = 128;
}  // namespace

void RemovedContextCloser::arm(const ibv_context& context) noexcept {
  command_fd_ = context.cmd_fd;
  async_fd_ = context.async_fd;
}

RemovedContextCloser::~RemovedContextCloser() {
  if (command_fd_ < 0) return;
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return;
  ::dup3(nothing.get(), command_fd_, O_CLOEXEC);
  ::dup3(nothing.get(), async_fd_, O_CLOEXEC);
}

RdmaDevice::RdmaDevice(EventChannelOwner channel, CmIdOwner bound, const DeviceRequest& request,
                       Logger& logger)
    : channel_(std::move(channel)),
      bound_(std::move(bound)),
      pd_(make_protection_domain(bound_->verbs)),
      shared_{.channel = channel_.get(),
              .context = bound_->verbs,
              .pd = pd_.get(),
              .request = request,
              .capabilities = probe_capabilities(bound_->verbs, bound_->port_num),
              .logger = &logger,
              .parked = &parked_} {
  prepare_async_events(shared_.context);
  epoll_.add(channel_->fd);
  epoll_.add(shared_.context->async_fd);
}

std::unique_ptr<MemoryRegion> RdmaDevice::register_memory(std::span<std::byte> memory) {
  return std::make_unique<RdmaMemoryRegion>(pd_.get(), memory);
}

std::unique_ptr<CompletionQueue> RdmaDevice::create_completion_queue(std::uint32_t depth) {
  return std::make_unique<RdmaCompletionQueue>(shared_.context, depth);
}

std::unique_ptr<SharedReceiveQueue> RdmaDevice::create_shared_receive_queue(std::uint32_t depth) {
  return std::make_unique<RdmaSharedReceiveQueue>(pd_.get(), depth);
}

void RdmaDevice::listen(std::uint16_t port) {
  CmIdOwner id = make_cm_id(channel_.get(), nullptr);
  Endpoint local = shared_.request.underlay;
  local.port = port;
  sockaddr_storage address = to_cm_address(local, shared_.request.by_gid, std::nullopt);
  if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&address)) != 0 ||
      rdma_listen(id.get(), kBacklog) != 0) {
    throw SystemError(
        errno, fmt::format("listen on {} of {}", local.to_string(), shared_.capabilities.device));
  }
  listener_ = std::move(id);
}

std::unique_ptr<Connection> RdmaDevice::dial(const RemoteAddress& remote, const PathOptions& path) {
  if (!shared_.port_is_active()) {
    throw SystemError(
        ENETDOWN, fmt::format("dial {} through port {} of {}", remote.endpoint.address.to_string(),
                              shared_.capabilities.port, shared_.capabilities.device));
  }
  parked_.clear();
  const bool infiniband = shared_.capabilities.link == "InfiniBand";
  if ((path.service_level || path.pkey) && !infiniband && !std::exchange(warned_, true)) {
    shared_.logger->warn("{} is {}, which has no service level and no partitions: ignored",
                         shared_.capabilities.device, shared_.capabilities.link);
  }
  return std::make_unique<RdmaConnection>(shared_, remote, path);
}

bool RdmaDevice::removed(Event& out, std::string detail) {
  if (std::exchange(removed_, true)) return false;
  out.kind = EventKind::DeviceRemoved;
  out.detail = std::move(detail);
  return true;
}

bool RdmaDevice::translate(CmEvent& in, Event& out) {
  if (in.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    closer_.arm(*shared_.context);
    return removed(out, fmt::format("{} was removed", shared_.capabilities.device));
  }
  if (in.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    if (in.incoming->verbs != shared_.context) return false;
    out.kind = EventKind::ConnectRequest;
    out.incoming = std::make_unique<RdmaConnection>(shared_, std::move(in.incoming));
    out.private_data = in.private_data();
    return true;
  }
  if (in.id == bound_.get() || in.id == listener_.get()) {
    shared_.logger->info("{}: {} on {}", shared_.capabilities.device, rdma_event_str(in.type),
                         shared_.request.underlay.address.to_string());
    return false;
  }
  if (in.id->context == nullptr) return false;  // parked
  return static_cast<RdmaConnection*>(in.id->context)->translate(in, out);
}

bool RdmaDevice::translate(const AsyncEvent& in, Event& out) {
  auto* connection = static_cast<RdmaConnection*>(in.queue_pair_context);
  switch (meaning_of(in.type)) {
    case AsyncMeaning::QueuePairFailed:
      out.kind = EventKind::QueuePairFailed;
      out.connection = connection;
      out.detail = ibv_event_type_str(in.type);
      return true;
    case AsyncMeaning::DataBeforeEstablished:
      connection->data_before_established();
      return false;
    case AsyncMeaning::PortDown:
    case AsyncMeaning::PortActive:
      if (in.port != shared_.capabilities.port) return false;
      out.kind = meaning_of(in.type) == AsyncMeaning::PortDown ? EventKind::PortDown
                                                               : EventKind::PortActive;
      out.detail = fmt::format("port {} of {}", in.port, shared_.capabilities.device);
      return true;
    case AsyncMeaning::DeviceFailed:
      return removed(
          out, fmt::format("{}: {}", shared_.capabilities.device, ibv_event_type_str(in.type)));
    case AsyncMeaning::Nothing:
      break;
  }
  shared_.logger->debug("{}: {}", shared_.capabilities.device, ibv_event_type_str(in.type));
  return false;
}

int RdmaDevice::process_events(EventHandler& handler) {
  int handed = 0;
  const auto hand_on = [&](auto& in) {
    Event out;
    if (!translate(in, out)) return;
    handler.on_event(out);
    ++handed;
  };
  auto event = next_cm_event(channel_.get());
  for (; event; event = next_cm_event(channel_.get())) hand_on(*event);
  if (event.error() != EAGAIN) {
    // Without its events the device is of no use, though a new Device may do.
    Event out;
    if (removed(out, fmt::format("no more events: {}", status_text(event.error())))) {
      handler.on_event(out);
      ++handed;
    }
  }
  while (auto async = next_async_event(shared_.context)) hand_on(*async);
  return handed;
}

}  // namespace ipoverbs::verbs
