#include "verbs/rdma/connection.h"

#include <bit>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "core/byte_order.h"
#include "core/error.h"
#include "verbs/rdma/address.h"
#include "verbs/rdma/memlock.h"

namespace ipoverbs::verbs {

namespace {
// A first try of 20 ms serves a neighbour that answers at once, 50 ms one that takes its time. 40
// are two seconds, in which the kernel has asked for the neighbour twice.
constexpr int kFirstResolveMs = 20;
constexpr int kResolveMs = 50;
constexpr unsigned kResolveAttempts = 40;
// On InfiniBand the route is asked of the subnet manager.
constexpr int kRouteMs = 2000;
// A P_Key's top bit says how its holder is a member, not which partition it is (IBTA 10.9.1).
constexpr unsigned kPartitionBits = 0x7fff;

PathMtu path_mtu_bytes(ibv_mtu mtu) { return PathMtu(128U << static_cast<unsigned>(mtu)); }
}  // namespace

RdmaConnection::RdmaConnection(const DeviceShared& shared, const RemoteAddress& remote,
                               const PathOptions& path)
    : shared_(shared), remote_(remote), path_(path), state_(State::Resolving) {
  if (remote_.endpoint.address.is_link_local() && remote_.endpoint.scope == 0) {
    remote_.endpoint.scope = shared.request.underlay.scope;
  }
  start();
}

RdmaConnection::RdmaConnection(const DeviceShared& shared, CmIdOwner id)
    : shared_(shared), state_(State::Ready), id_(std::move(id)) {
  id_->context = this;
  const auto source = from_cm_address(id_->route.addr.dst_storage);
  if (source) remote_.endpoint = *source;
  remote_.by_gid = shared.request.by_gid;
}

bool DeviceShared::port_is_active() const noexcept {
  ibv_port_attr attr{};
  return ibv_query_port(context, capabilities.port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE;
}

RdmaConnection::~RdmaConnection() {
  if (state_ == State::Connected) disconnect();
  if (!queue_pair_ || shared_.port_is_active()) return;
  queue_pair_.reset();
  id_->context = nullptr;  // its events find nobody
  shared_.parked->push_back(std::move(id_));
}

void RdmaConnection::start() {
  state_ = State::Resolving;
  attempts_ = 0;
  id_ = make_cm_id(shared_.channel, this);
  if (path_.traffic_class) {
    set_byte_option(id_.get(), RDMA_OPTION_ID_TOS, *path_.traffic_class, "traffic class");
  }
  resolve_address();
}

void RdmaConnection::resolve_address() {
  Endpoint local = shared_.request.underlay;
  local.port = 0;
  sockaddr_storage from = to_cm_address(local, shared_.request.by_gid, path_.pkey);
  sockaddr_storage to = to_cm_address(remote_.endpoint, remote_.by_gid, path_.pkey);
  const int timeout_ms = attempts_++ == 0 ? kFirstResolveMs : kResolveMs;
  if (rdma_resolve_addr(id_.get(), reinterpret_cast<sockaddr*>(&from),
                        reinterpret_cast<sockaddr*>(&to), timeout_ms) != 0) {
    throw SystemError(errno, fmt::format("resolve {} from {}", remote_.endpoint.address.to_string(),
                                         local.address.to_string()));
  }
}

void RdmaConnection::create_queue_pair(const QueuePairConfig& config) {
  ibv_qp_init_attr attr{};
  attr.qp_context = this;
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = config.completion_queue->raw();
  attr.cap.max_send_wr = config.send_depth;
  attr.cap.max_send_sge = config.send_sge;
  if (config.shared_receive_queue != nullptr) {
    attr.srq = config.shared_receive_queue->raw();
  } else {
    attr.cap.max_recv_wr = config.receive_depth;
    attr.cap.max_recv_sge = 1;
  }
  if (rdma_create_qp(id_.get(), shared_.pd, &attr) != 0) {
    const int error = errno;
    std::string tried =
        fmt::format("create a queue pair of {} sends and {} receives on {}", config.send_depth,
                    attr.cap.max_recv_wr, shared_.capabilities.device);
    const auto limit = locked_memory_limit();
    if (error == ENOMEM && limit) tried = locked_memory_message(tried, *limit, 0);
    throw SystemError(error, tried);
  }
  queue_pair_.reset(id_.get());
}

rdma_conn_param RdmaConnection::parameters(std::span<const std::byte> private_data,
                                           std::size_t limit, const char* message) const {
  // Checked here, because a failed rdma_accept rejects the far end for good.
  if (private_data.size() > limit) {
    throw SystemError(EINVAL, fmt::format("put {} bytes of private data into a {}, which holds {}",
                                          private_data.size(), message, limit));
  }
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<std::uint8_t>(private_data.size());
  parameters.flow_control = 1;
  parameters.retry_count = shared_.request.timers.retry_count;
  parameters.rnr_retry_count = shared_.request.timers.rnr_retry;
  return parameters;
}

void RdmaConnection::connect(std::span<const std::byte> private_data) {
  rdma_conn_param conn = parameters(private_data, kConnectPrivateData, "connect request");
  set_byte_option(id_.get(), RDMA_OPTION_ID_ACK_TIMEOUT, shared_.request.timers.ack_timeout,
                  "ACK timeout");
  if (rdma_connect(id_.get(), &conn) != 0) {
    throw SystemError(errno, fmt::format("connect to {}", remote_.endpoint.to_string()));
  }
  state_ = State::Connecting;
}

void RdmaConnection::accept(std::span<const std::byte> private_data) {
  rdma_conn_param conn = parameters(private_data, kAcceptPrivateData, "connect reply");
  set_byte_option(id_.get(), RDMA_OPTION_ID_ACK_TIMEOUT, shared_.request.timers.ack_timeout,
                  "ACK timeout");
  if (rdma_accept(id_.get(), &conn) != 0) {
    throw SystemError(errno,
                      fmt::format("accept the connection of {}", remote_.endpoint.to_string()));
  }
  state_ = State::Connecting;
  set_min_rnr_timer();
}

void RdmaConnection::reject(std::span<const std::byte> private_data) {
  const rdma_conn_param conn = parameters(private_data, kRejectPrivateData, "reject");
  if (rdma_reject(id_.get(), conn.private_data, conn.private_data_len) != 0) {
    throw SystemError(errno,
                      fmt::format("reject the connection of {}", remote_.endpoint.to_string()));
  }
  state_ = State::Closed;
}

void RdmaConnection::disconnect() noexcept {
  // EINVAL in a state that has nothing to disconnect, which is all right.
  if (!queue_pair_) return;
  if (shared_.port_is_active()) {
    rdma_disconnect(id_.get());
  } else {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE);
  }
}

Endpoint RdmaConnection::remote() const { return remote_.endpoint; }

QueuePairAttributes RdmaConnection::attributes() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const int mask = IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV;
  if (!queue_pair_) throw SystemError(EINVAL, "query a queue pair that is not there");
  if (const int error = ibv_query_qp(id_->qp, &attr, mask, &init); error != 0) {
    throw SystemError(error, fmt::format("query queue pair {:#x} of {}", id_->qp->qp_num,
                                         shared_.capabilities.device));
  }
  return {.number = QpNumber(id_->qp->qp_num),
          .path_mtu = path_mtu_bytes(attr.path_mtu),
          .ack_timeout = attr.timeout,
          .min_rnr_timer = attr.min_rnr_timer,
          .gid_index = attr.ah_attr.grh.sgid_index};
}

void RdmaConnection::set_min_rnr_timer() noexcept {
  // iWARP has no RNR NAK.
  if (!queue_pair_ || shared_.capabilities.link == "iWARP") return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.min_rnr_timer = shared_.request.timers.min_rnr_timer;
  const int error = ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) {
    shared_.logger->warn("{}: cannot set min_rnr_timer of queue pair {:#x}, 655 ms remain: {}",
                         shared_.capabilities.device, id_->qp->qp_num, status_text(error));
  }
}

bool RdmaConnection::failed(Event& out, const std::string& what) {
  state_ = State::Closed;
  out.kind = EventKind::Failed;
  out.detail = what;
  return true;
}

bool RdmaConnection::address_resolved(Event& out) {
  state_ = State::Routing;
  const unsigned pkey = std::bit_cast<Be16>(id_->route.addr.addr.ibaddr.pkey).value();
  if (shared_.capabilities.link == "InfiniBand" && path_.pkey &&
      ((*path_.pkey ^ pkey) & kPartitionBits) != 0) {
    return failed(out,
                  fmt::format("partition {:#06x} was asked for, but the underlay address is in "
                              "{:#06x}: use the address of that partition's IPoIB interface",
                              *path_.pkey, pkey));
  }
  const int result = preset_path_ ? rdma_set_option(id_.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
                                                    &*preset_path_, sizeof *preset_path_)
                                  : rdma_resolve_route(id_.get(), kRouteMs);
  if (result == 0) return false;
  out.status = -errno;
  return failed(out, fmt::format("no route: {}", status_text(errno)));
}

bool RdmaConnection::route_resolved(Event& out) {
  if (shared_.capabilities.link == "InfiniBand" && path_.service_level && !preset_path_ &&
      id_->route.num_paths > 0) {
    preset_path_ = path_with_service_level(id_->route.path_rec[0], *path_.service_level);
    try {
      start();
      return false;
    } catch (const SystemError& error) {
      out.status = -error.code().value();
      return failed(out, error.what());
    }
  }
  state_ = State::Ready;
  out.kind = EventKind::RouteResolved;
  return true;
}

bool RdmaConnection::address_failed(int status, Event& out) {
  if (status == -ETIMEDOUT && attempts_ < kResolveAttempts) {
    try {
      resolve_address();
      return false;
    } catch (const SystemError& error) {
      out.status = -error.code().value();
      return failed(out, error.what());
    }
  }
  return failed(out, status == -ETIMEDOUT
                         ? "the address does not answer (no neighbour on the underlay)"
                         : fmt::format("cannot resolve the address: {}", status_text(status)));
}

bool RdmaConnection::disconnected(Event& out) {
  disconnect();
  state_ = State::Closed;
  out.kind = EventKind::Disconnected;
  return true;
}

bool RdmaConnection::translate(const CmEvent& in, Event& out) {
  if (state_ == State::Closed) return false;  // its end was reported
  out.connection = this;
  out.private_data = in.private_data();
  out.status = in.status;
  switch (in.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return address_resolved(out);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return address_failed(in.status, out);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return route_resolved(out);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return failed(out, fmt::format("no route: {}", status_text(in.status)));
    case RDMA_CM_EVENT_ESTABLISHED:
      state_ = State::Connected;
      set_min_rnr_timer();
      out.kind = EventKind::Established;
      return true;
    case RDMA_CM_EVENT_REJECTED:
      state_ = State::Closed;
      out.kind = EventKind::Rejected;
      out.detail = reject_reason(in.status);
      return true;
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return failed(out, fmt::format("connecting failed: {}", status_text(in.status)));
    case RDMA_CM_EVENT_UNREACHABLE:
      return failed(out, fmt::format("unreachable: {}", status_text(in.status)));
    case RDMA_CM_EVENT_DISCONNECTED:
      return disconnected(out);
    case RDMA_CM_EVENT_ADDR_CHANGE:
      out.kind = EventKind::AddressChanged;
      out.detail = "the hardware address of the underlay's interface changed";
      return true;
    default:
      return false;  // TIMEWAIT_EXIT; the device's own events are the device's
  }
}

void RdmaConnection::data_before_established() noexcept {
  if (state_ == State::Connecting) rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
}

}  // namespace ipoverbs::verbs
