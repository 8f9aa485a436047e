// What a device can do, by asking it.
#include <infiniband/verbs.h>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/rdma/device.h"

namespace ipoverbs::verbs {

namespace {
std::uint32_t positive(int value) { return value > 0 ? static_cast<std::uint32_t>(value) : 0; }

std::string link_name(const ibv_context& context, const ibv_port_attr& port) {
  if (context.device->transport_type == IBV_TRANSPORT_IWARP) return "iWARP";
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}
}  // namespace

Capabilities probe_capabilities(ibv_context* context, std::uint8_t port) {
  Capabilities c;
  c.device = ibv_get_device_name(context->device);
  c.provider = "rdma-core";
  c.port = port;
  ibv_device_attr device{};
  if (const int error = ibv_query_device(context, &device); error != 0) {
    throw SystemError(error, fmt::format("query {}", c.device));
  }
  ibv_port_attr attr{};
  if (const int error = ibv_query_port(context, port, &attr); error != 0) {
    throw SystemError(error, fmt::format("query port {} of {}", port, c.device));
  }
  c.link = link_name(*context, attr);
  c.max_qp_wr = positive(device.max_qp_wr);
  c.max_cqe = positive(device.max_cqe);
  c.max_send_sge = positive(device.max_sge);
  c.max_recv_sge = positive(device.max_sge);
  if (device.max_srq > 0) {
    c.max_srq_wr = positive(device.max_srq_wr);
    c.max_srq_sge = positive(device.max_srq_sge);
  }
  c.max_message = attr.max_msg_sz;
  c.active_mtu = PathMtu(128U << static_cast<unsigned>(attr.active_mtu));
  return c;
}

}  // namespace ipoverbs::verbs
