// A reliable connection over librdmacm.
//
// Theory of operation. One rdma_cm_id, and from create_queue_pair on one queue pair that
// rdma_create_qp made on it. The id's context points to the object, so that events find it; nothing
// else does. States of who dials:
//
//   Resolving --ADDR_RESOLVED--> Routing --ROUTE_RESOLVED--> Ready --connect()--> Connecting
//       ^  |ADDR_ERROR (timeout)                                                     |ESTABLISHED
//       +--+ rdma_resolve_addr again                                                 v
//   of who listens: Ready --accept()--> Connecting --ESTABLISHED-------------> Connected --> Closed
//
// Address resolution is asked for with short timeouts, many times: with an empty neighbour table
// the kernel (6.1, drivers/infiniband/core/addr.c) misses an answer that comes within the call and
// succeeds only when the timeout ends. The route takes one call; on RoCE it is immediate.
//
// Timers. The ACK timeout is an option of the id and has to be set on both sides: before
// rdma_connect, before rdma_accept. librdmacm leaves min_rnr_timer at 0, which means 655.36 ms; it
// is modified from RTS to RTS as soon as the queue pair is there: when rdma_accept returns on the
// passive side (so that it does not matter whether data or the event comes first), on ESTABLISHED
// on the active one.
//
// InfiniBand. An asked-for service level takes two rounds: see ib_path.h. The partition is that of
// the IPoIB interface, or, with GIDs, part of the address.
//
// A port that is down. What the connection manager sends through a port whose interface is down
// fails in rdma_rxe (drivers/infiniband/sw/rxe/rxe_net.c, rxe_init_packet), and a failed send puts
// queue pair 1 into its error state, from which nobody takes it (seen on 6.1): the device would
// never hear of a connection again. So nothing is dialled through such a port, and of a connection
// that ends meanwhile only the queue pair is destroyed; its id, whose destruction sends DREQ, waits
// in DeviceShared::parked until the port is active.
//
// Closing. DISCONNECTED is answered with rdma_disconnect, or the far end would never learn that it
// is done. Destruction flushes the queue pair, destroys it and then the id, which sends REJ or DREQ
// as the state asks for.
#pragma once

#include <optional>
#include <vector>

#include "core/log.h"
#include "verbs/device.h"
#include "verbs/open.h"
#include "verbs/rdma/cm_event.h"
#include "verbs/rdma/ib_path.h"
#include "verbs/rdma/owners.h"

namespace ipoverbs::verbs {

// What the objects of one device have in common. Outlives them.
struct DeviceShared {
  rdma_event_channel* channel = nullptr;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  DeviceRequest request;
  Capabilities capabilities;
  Logger* logger = nullptr;
  std::vector<CmIdOwner>* parked = nullptr;  // ids to be destroyed when the port is active

  // Whether the port is, now.
  [[nodiscard]] bool port_is_active() const noexcept;
};

class RdmaConnection final : public Connection {
 public:
  // Dials: starts to resolve `remote`. Throws SystemError.
  RdmaConnection(const DeviceShared& shared, const RemoteAddress& remote, const PathOptions& path);
  // Takes over the id of a connect request.
  RdmaConnection(const DeviceShared& shared, CmIdOwner id);
  RdmaConnection(const RdmaConnection&) = delete;
  RdmaConnection& operator=(const RdmaConnection&) = delete;
  ~RdmaConnection() override;

  void create_queue_pair(const QueuePairConfig& config) override;
  [[nodiscard]] ibv_qp* queue_pair() const override { return queue_pair_ ? id_->qp : nullptr; }
  void connect(std::span<const std::byte> private_data) override;
  void accept(std::span<const std::byte> private_data) override;
  void reject(std::span<const std::byte> private_data) override;
  void disconnect() noexcept override;
  [[nodiscard]] Endpoint remote() const override;
  [[nodiscard]] QueuePairAttributes attributes() const override;

  // Acts on an event of this id and says whether `out` is to be handed on. `out` refers to `in`.
  [[nodiscard]] bool translate(const CmEvent& in, Event& out);
  // The queue pair received before ESTABLISHED came (IBV_EVENT_COMM_EST): tells the connection
  // manager, whose RTU may have been lost.
  void data_before_established() noexcept;

 private:
  enum class State : std::uint8_t { Resolving, Routing, Ready, Connecting, Connected, Closed };

  // A new id, and everything from the start. Throws SystemError.
  void start();
  void resolve_address();
  [[nodiscard]] bool address_resolved(Event& out);
  [[nodiscard]] bool address_failed(int status, Event& out);
  [[nodiscard]] bool route_resolved(Event& out);
  [[nodiscard]] bool failed(Event& out, const std::string& what);
  [[nodiscard]] bool disconnected(Event& out);
  [[nodiscard]] rdma_conn_param parameters(std::span<const std::byte> private_data,
                                           std::size_t limit, const char* message) const;
  void set_min_rnr_timer() noexcept;

  const DeviceShared& shared_;
  RemoteAddress remote_;
  PathOptions path_;
  State state_;
  unsigned attempts_ = 0;                     // address resolutions started
  std::optional<ibv_path_data> preset_path_;  // instead of asking for the route
  CmIdOwner id_;
  QueuePairOwner queue_pair_;
};

}  // namespace ipoverbs::verbs
