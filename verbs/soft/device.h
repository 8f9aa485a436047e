// The software device: RoCEv2 in this process, on UDP port 4791 of one underlay address.
//
// Theory of operation. It is an HCA without hardware: rdma_rxe and RoCE NICs talk to it, through
// the same connection manager and with the same packets. It has no thread. A worker makes progress
// on its own queue pairs by polling its completion queue; the control thread runs the connection
// manager from process_events(). From the bottom:
//
//   roce, icrc, psn           packets
//   requester, responder      a reliable connection's two halves, free of I/O
//   queue_pair, work_queue,   what the verbs see
//     completion_ring, memory_table
//   engine, worker            a completion queue and its queue pairs; how two threads share it
//   wire, burst               datagrams in and out; udp_wire is the socket, fault_plan spoils it
//   port_group, switchboard   port 4791 shared by the workers; what they tell each other
//   cm_*, mad, gsi            the connection manager, free of I/O
//   connections,              the control path of verbs/device.h
//     soft_connection, soft_queues, device
//
// One software device per underlay address and network namespace, in one process: a second one is
// refused. Not with rdma_rxe loaded in the same namespace, which takes the port.
//
// What is missing beside hardware: RDMA READ, WRITE and atomics (refused as by an HCA that grants
// them to nobody), UD, IP multicast, port and address events.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/fd.h"
#include "core/log.h"
#include "verbs/device.h"
#include "verbs/open.h"
#include "verbs/soft/connections.h"
#include "verbs/soft/fault_plan.h"
#include "verbs/soft/gsi_port.h"
#include "verbs/soft/open.h"
#include "verbs/soft/qp_numbers.h"
#include "verbs/soft/soft_queues.h"

namespace ipoverbs::verbs::soft {

class SoftDevice final : public Device, private ConnectionHost {
 public:
  // `interface_mtu`: of the interface that has the underlay address. Throws SystemError.
  SoftDevice(const DeviceRequest& request, IpMtu interface_mtu, const SoftOptions& options);

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::vector<CounterValue> counters() const override;
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(std::span<std::byte> memory) override;
  [[nodiscard]] std::unique_ptr<CompletionQueue> create_completion_queue(
      std::uint32_t depth) override;
  [[nodiscard]] std::unique_ptr<SharedReceiveQueue> create_shared_receive_queue(
      std::uint32_t depth) override;
  void listen(std::uint16_t port) override { connections_.listen(port); }
  [[nodiscard]] std::unique_ptr<Connection> dial(const RemoteAddress& remote,
                                                 const PathOptions& path) override {
    return connections_.dial(remote, path);
  }
  [[nodiscard]] int event_fd() const override { return epoll_.fd(); }
  int process_events(EventHandler& handler) override;

 private:
  [[nodiscard]] QueuePairPlace place_queue_pair(CompletionQueue& queue) override;
  [[nodiscard]] Route route_to(const IpAddress& remote) const override;
  void wake() noexcept override { bell_.ring(); }
  void keep_timer();

  Capabilities capabilities_;
  DeviceParts parts_;
  EventFd bell_;
  UdpWire management_;  // of QP1: the socket of slot 0
  std::optional<FaultyWire> faulty_management_;
  GsiPort port_;
  QpNumbers numbers_;
  Connections connections_;
  Timer timer_;
  std::optional<TimePoint> due_;  // timer_ is set to
  Epoll epoll_;
};

// What a software device on an interface of that MTU can do.
[[nodiscard]] Capabilities soft_capabilities(IpMtu interface_mtu);

}  // namespace ipoverbs::verbs::soft
