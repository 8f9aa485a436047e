// Move-only owners of what libibverbs and librdmacm make.
//
// Each is a std::unique_ptr with the library's destroy function; a class that holds several
// declares parents before children, so that the language tears them down in the order that the
// libraries ask for: event, queue pair, cm id, completion queue, completion channel, memory region,
// shared receive queue, protection domain, event channel. A destroy function that fails (EBUSY: a
// child is still alive) is a programmer's error and leaks the object; nothing throws here.
//
// The make_ functions throw SystemError with the library's errno and `tried`.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <string>

namespace ipoverbs::verbs {

template <auto destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const noexcept {
    destroy(object);
  }
};

template <class T, auto destroy>
using Owner = std::unique_ptr<T, Destroyer<destroy>>;

using EventChannelOwner = Owner<rdma_event_channel, rdma_destroy_event_channel>;
// rdma_destroy_id blocks until every event of the id is acknowledged, and tells the far end (REJ,
// DREQ) what its state asks for.
using CmIdOwner = Owner<rdma_cm_id, rdma_destroy_id>;
using CmEventOwner = Owner<rdma_cm_event, rdma_ack_cm_event>;
using ContextOwner = Owner<ibv_context, ibv_close_device>;
using ProtectionDomainOwner = Owner<ibv_pd, ibv_dealloc_pd>;
using CompletionChannelOwner = Owner<ibv_comp_channel, ibv_destroy_comp_channel>;
using CompletionQueueOwner = Owner<ibv_cq, ibv_destroy_cq>;
using SharedReceiveQueueOwner = Owner<ibv_srq, ibv_destroy_srq>;
using MemoryRegionOwner = Owner<ibv_mr, ibv_dereg_mr>;
using DeviceListOwner = Owner<ibv_device*, ibv_free_device_list>;
// The queue pair that rdma_create_qp made lives in its id (id->qp), and so the owner holds the id,
// which outlives it.
using QueuePairOwner = Owner<rdma_cm_id, rdma_destroy_qp>;

[[nodiscard]] EventChannelOwner make_event_channel();
// `context` is found again in id->context. Port space RDMA_PS_TCP: reliable connections.
[[nodiscard]] CmIdOwner make_cm_id(rdma_event_channel* channel, void* context);
[[nodiscard]] ProtectionDomainOwner make_protection_domain(ibv_context* context);

// Sets an option of level RDMA_OPTION_ID that is one byte wide (rdma_set_option(3)).
void set_byte_option(rdma_cm_id* id, int option, std::uint8_t value, const char* name);

}  // namespace ipoverbs::verbs
