// The rdma-core device: everything that open_rdma_device() made, for one underlay address.
//
// Theory of operation. A cm id bound to the underlay address makes librdmacm open the RDMA device
// that owns the address; its context (id->verbs) carries everything else: protection domain,
// completion queues, shared receive queues, memory regions, and the queue pairs of the connections,
// whose ids stand on the same event channel. librdmacm keeps one context for each RDMA device and
// process: two Devices of one process must be on two RDMA devices, or they take one another's
// asynchronous events.
//
// event_fd() is an epoll descriptor over the event channel and the context's asynchronous events.
// Events are read one at a time, acknowledged, and then handed on; the kernel drops those of an id
// or a queue pair that is destroyed, so that a handler may destroy any Connection.
//
// Removal. When the kernel takes the device away (`rdma link delete`, unplugging), every id reports
// DEVICE_REMOVAL, and then the kernel waits until nobody has the device open, where the driver
// cannot disassociate from its users, as rdma_rxe cannot. So the owner destroys all that it made
// and then the Device, whose last act is to close the context: see RemovedContextCloser.
#pragma once

#include <vector>

#include "core/epoll.h"
#include "verbs/device.h"
#include "verbs/rdma/async_event.h"
#include "verbs/rdma/connection.h"
#include "verbs/rdma/owners.h"

namespace ipoverbs::verbs {

// Closes the files of a context whose device was removed.
//
// librdmacm opens a device once and keeps its context for the life of the process. It looks for
// devices that are gone only when it meets an unknown one, and not at all while the machine has
// none (librdmacm/cma.c, sync_devices_list), so that the kernel would wait for this process for
// ever. rdma_get_devices() would make it look, but opens and keeps every other device of the
// machine, whose removal nobody would then tell us. Therefore the two descriptors of the dead
// context are replaced by /dev/null; librdmacm closes those when the device comes back, under a new
// index.
class RemovedContextCloser {
 public:
  RemovedContextCloser() = default;
  RemovedContextCloser(const RemovedContextCloser&) = delete;
  RemovedContextCloser& operator=(const RemovedContextCloser&) = delete;
  ~RemovedContextCloser();
  // The device is gone: on destruction, when all that was made from it is destroyed too.
  void arm(const ibv_context& context) noexcept;

 private:
  int command_fd_ = -1;
  int async_fd_ = -1;
};

class RdmaDevice final : public Device {
 public:
  // `bound`: an id on `channel`, bound to the underlay address, with a context. Throws SystemError.
  RdmaDevice(EventChannelOwner channel, CmIdOwner bound, const DeviceRequest& request,
             Logger& logger);

  [[nodiscard]] const Capabilities& capabilities() const override { return shared_.capabilities; }
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(std::span<std::byte> memory) override;
  [[nodiscard]] std::unique_ptr<CompletionQueue> create_completion_queue(
      std::uint32_t depth) override;
  [[nodiscard]] std::unique_ptr<SharedReceiveQueue> create_shared_receive_queue(
      std::uint32_t depth) override;
  void listen(std::uint16_t port) override;
  [[nodiscard]] std::unique_ptr<Connection> dial(const RemoteAddress& remote,
                                                 const PathOptions& path) override;
  [[nodiscard]] int event_fd() const override { return epoll_.fd(); }
  int process_events(EventHandler& handler) override;

 private:
  [[nodiscard]] bool translate(CmEvent& in, Event& out);
  [[nodiscard]] bool translate(const AsyncEvent& in, Event& out);
  [[nodiscard]] bool removed(Event& out, std::string detail);

  RemovedContextCloser closer_;
  EventChannelOwner channel_;
  CmIdOwner bound_;
  ProtectionDomainOwner pd_;
  std::vector<CmIdOwner> parked_;
  DeviceShared shared_;
  CmIdOwner listener_;
  Epoll epoll_;
  bool removed_ = false;
  bool warned_ = false;  // that path options do not apply
};

// What the device and port behind `context` can do. Throws SystemError.
[[nodiscard]] Capabilities probe_capabilities(ibv_context* context, std::uint8_t port);

}  // namespace ipoverbs::verbs
