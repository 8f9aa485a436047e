// The path record of an InfiniBand connection with another service level.
//
// librdmacm has no option for the service level: rdma_resolve_route asks the subnet manager, which
// chooses. What it lets a program do is set the whole path itself (RDMA_OPTION_IB_PATH), in place
// of rdma_resolve_route. So the route is resolved once for its record, and a second id gets the
// record with the service level changed. No InfiniBand was there to try it on.
#pragma once

#include <infiniband/sa.h>

#include <cstdint>

namespace ipoverbs::verbs {

// `record` as RDMA_OPTION_IB_PATH takes it (layout of the PathRecord attribute, IBTA volume 1,
// 15.2.5.16), with `service_level` 0..15.
[[nodiscard]] ibv_path_data path_with_service_level(const ibv_sa_path_rec& record,
                                                    std::uint8_t service_level);

}  // namespace ipoverbs::verbs
