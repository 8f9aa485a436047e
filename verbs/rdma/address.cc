#include "verbs/rdma/address.h"

#include <rdma/rdma_cma.h>

#include <bit>
#include <cstring>

#include "core/byte_order.h"

namespace ipoverbs::verbs {

namespace {
// Port space TCP in the upper half of the service id, the port in its low 16 bits.
constexpr std::uint64_t kServiceMask = RDMA_IB_IP_PS_MASK;
constexpr std::uint64_t kServiceTcp = RDMA_IB_IP_PS_TCP;
}  // namespace

sockaddr_ib to_sockaddr_ib(const Endpoint& endpoint, std::optional<std::uint16_t> pkey) {
  sockaddr_ib sib{};
  sib.sib_family = AF_IB;
  sib.sib_pkey = std::bit_cast<std::uint16_t>(Be16(pkey.value_or(0xffff)));
  std::memcpy(&sib.sib_addr, endpoint.address.bytes().data(), sizeof sib.sib_addr);
  sib.sib_sid = std::bit_cast<std::uint64_t>(Be64(kServiceTcp | endpoint.port));
  const std::uint64_t mask = endpoint.port == 0 ? kServiceMask : ~std::uint64_t{0};
  sib.sib_sid_mask = std::bit_cast<std::uint64_t>(Be64(mask));
  return sib;
}

sockaddr_storage to_cm_address(const Endpoint& endpoint, bool by_gid,
                               std::optional<std::uint16_t> pkey) {
  if (!by_gid) return endpoint.to_sockaddr();
  const sockaddr_ib sib = to_sockaddr_ib(endpoint, pkey);
  sockaddr_storage storage{};
  std::memcpy(&storage, &sib, sizeof sib);
  return storage;
}

std::optional<Endpoint> from_cm_address(const sockaddr_storage& address) {
  if (address.ss_family != AF_IB) {
    return Endpoint::from_sockaddr(reinterpret_cast<const sockaddr&>(address));
  }
  sockaddr_ib sib{};
  std::memcpy(&sib, &address, sizeof sib);
  Endpoint endpoint;
  endpoint.address = IpAddress::from_bytes(std::as_bytes(std::span(&sib.sib_addr, 1)));
  endpoint.port = static_cast<std::uint16_t>(std::bit_cast<Be64>(sib.sib_sid).value() & 0xffff);
  return endpoint;
}

}  // namespace ipoverbs::verbs
