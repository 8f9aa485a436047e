#include "verbs/soft/udp_wire.h"

#include "verbs/soft/udp_socket.h"
#include "verbs/soft/udp_wire_buffers.h"

namespace ipoverbs::verbs::soft {

namespace {
constexpr std::size_t kSendBuffer = std::size_t{8} << 20;  // bytes
}  // namespace

UdpWire::Incoming::Incoming() {
  for (std::size_t i = 0; i < kBatch; ++i) {
    pieces.at(i) = {buffers.data() + i * kBuffer, kBuffer};
    msghdr& message = messages.at(i).msg_hdr;
    message.msg_name = &addresses.at(i);
    message.msg_iov = &pieces.at(i);
    message.msg_iovlen = 1;
    message.msg_control = controls.at(i).bytes.data();
    prepare(i);
  }
}

UdpWire::UdpWire(int receive, const Endpoint& local, std::uint64_t random)
    : receive_(receive),
      local_(local),
      send_(open_send_socket(local_, random)),
      outgoing_(std::make_unique<Outgoing>()),
      incoming_(std::make_unique<Incoming>()) {
  grow_send_buffer(send_.get(), kSendBuffer);
}

UdpWire::~UdpWire() = default;

}  // namespace ipoverbs::verbs::soft
