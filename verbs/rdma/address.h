// Socket addresses that librdmacm takes: IP (AF_INET, AF_INET6) and GID (AF_IB).
//
// AF_IB (include/rdma/ib.h) names an InfiniBand port by GID and the service by a 64-bit service id,
// whose IP form carries the port space and the port number (IBTA annex A11; rdma_cma.h). The kernel
// puts no header of its own in front of the private data then (rdma_connect(3)). It is
// InfiniBand's: rdma_rxe of Linux 6.1 refuses both to bind to a GID of its own and to resolve from
// one (ENODEV), so that no device here could try AF_IB any further.
#pragma once

#include <infiniband/ib.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "core/ip.h"

namespace ipoverbs::verbs {

// `endpoint.address` is a GID in IPv6 form; port 0 leaves the port to the kernel. Without `pkey`
// any partition of the port matches.
[[nodiscard]] sockaddr_ib to_sockaddr_ib(const Endpoint& endpoint,
                                         std::optional<std::uint16_t> pkey);

// Either kind, for rdma_bind_addr and rdma_resolve_addr.
[[nodiscard]] sockaddr_storage to_cm_address(const Endpoint& endpoint, bool by_gid,
                                             std::optional<std::uint16_t> pkey);

// The other way round, all three families; a GID becomes an IPv6 address. nullopt for any other.
[[nodiscard]] std::optional<Endpoint> from_cm_address(const sockaddr_storage& address);

}  // namespace ipoverbs::verbs
