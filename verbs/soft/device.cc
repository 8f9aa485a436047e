#include "verbs/soft/device.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr std::uint32_t kMaxQueue = 16384;  // work requests
constexpr std::uint32_t kMaxCompletions = 1U << 20;

// The largest path MTU whose packets fit, as rdma_rxe reckons: 80 bytes for IP, UDP and transport
// headers (drivers/infiniband/sw/rxe/rxe_param.h, RXE_MAX_HDR_LENGTH).
PathMtu largest_path_mtu(IpMtu interface_mtu) {
  constexpr std::uint32_t kHeaders = 80;
  std::uint32_t mtu = kMaxPathMtu;
  while (mtu > 256 && mtu + kHeaders > interface_mtu.value()) mtu /= 2;
  return PathMtu(mtu);
}

void require_depth(std::uint32_t depth, std::uint32_t most, const char* what) {
  if (depth >= 1 && depth <= most) return;
  throw SystemError(EINVAL,
                    fmt::format("create a {} of {} entries, 1 to {} can be", what, depth, most));
}

ConnectionsConfig connections_config(const DeviceRequest& request, const Capabilities& can,
                                     std::uint64_t seed) {
  ConnectionsConfig config;
  config.path_mtu = can.active_mtu;
  config.timers = request.timers;
  config.max_send_wr = can.max_qp_wr;
  config.max_recv_wr = can.max_qp_wr;
  config.seed = seed;
  return config;
}

}  // namespace

Capabilities soft_capabilities(IpMtu interface_mtu) {
  Capabilities c;
  c.device = "soft";
  c.provider = "soft";
  c.link = "RoCE";
  c.max_qp_wr = kMaxQueue;
  c.max_cqe = kMaxCompletions;
  c.max_send_sge = kMaxSendSge;
  c.max_recv_sge = 1;
  c.max_srq_wr = kMaxQueue;
  c.max_srq_sge = 1;
  c.max_message = kMaxMessage;
  c.active_mtu = largest_path_mtu(interface_mtu);
  return c;
}

SoftDevice::SoftDevice(const DeviceRequest& request, IpMtu interface_mtu,
                       const SoftOptions& options)
    : capabilities_(soft_capabilities(interface_mtu)),
      parts_(request.underlay, options),
      management_(parts_.ports.socket(kControlSlot), parts_.local, parts_.random()),
      faulty_management_(
          parts_.faults.rules.empty()
              ? std::nullopt
              : std::optional<FaultyWire>(std::in_place, management_, parts_.faults, kControlSlot)),
      port_(faulty_management_ ? static_cast<Wire&>(*faulty_management_) : management_,
            management_.local()),
      numbers_(static_cast<std::uint32_t>(parts_.random() >> 16U)),
      connections_(*this, port_, parts_.time, parts_.context, parts_.memory,
                   connections_config(request, capabilities_, parts_.random())) {
  for (const int fd :
       {parts_.ports.socket(kControlSlot), timer_.fd(), bell_.fd(), parts_.switchboard.fd()}) {
    epoll_.add(fd);
  }
}

std::unique_ptr<MemoryRegion> SoftDevice::register_memory(std::span<std::byte> memory) {
  return std::make_unique<SoftMemoryRegion>(parts_.memory, memory);
}

std::unique_ptr<CompletionQueue> SoftDevice::create_completion_queue(std::uint32_t depth) {
  require_depth(depth, kMaxCompletions, "completion queue");
  return std::make_unique<SoftCompletionQueue>(parts_, depth);
}

std::unique_ptr<SharedReceiveQueue> SoftDevice::create_shared_receive_queue(std::uint32_t depth) {
  require_depth(depth, kMaxQueue, "shared receive queue");
  return std::make_unique<SoftSharedReceiveQueue>(parts_, depth);
}

QueuePairPlace SoftDevice::place_queue_pair(CompletionQueue& queue) {
  const auto& mine = static_cast<SoftCompletionQueue&>(queue);
  return {numbers_.next(mine.slot()), mine.local(), mine.window_limit()};
}

// Connecting a UDP socket looks the route up, with what is known of its MTU (ip(7), IP_MTU), and
// sends nothing.
Route SoftDevice::route_to(const IpAddress& remote) const {
  const bool v4 = remote.is_v4();
  const Fd probe(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return {.error = errno};
  const sockaddr_storage address = Endpoint{remote, kRocePort, parts_.local.scope}.to_sockaddr();
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(probe.get(), to, sizeof address) != 0) return {.error = errno};
  int mtu = 0;
  socklen_t size = sizeof mtu;
  const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (::getsockopt(probe.get(), level, v4 ? IP_MTU : IPV6_MTU, &mtu, &size) != 0) return {};
  return {.path_mtu = largest_path_mtu(IpMtu(static_cast<std::uint32_t>(mtu)))};
}

int SoftDevice::process_events(EventHandler& handler) {
  bell_.silence();
  for (const Notice& notice : parts_.switchboard.take()) {
    connections_.on_notice(notice.qp, notice.status);
  }
  const int handed_on = connections_.process_events(handler);
  keep_timer();
  return handed_on;
}

void SoftDevice::keep_timer() {
  const auto due = connections_.deadline();
  // One that has gone off is readable until it is set again.
  if (due == due_ && (!due || *due > parts_.time.now())) return;
  due_ = due;
  timer_.set(due);
}

}  // namespace ipoverbs::verbs::soft
