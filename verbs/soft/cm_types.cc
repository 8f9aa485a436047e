#include "verbs/soft/cm_types.h"

#include <algorithm>

namespace ipoverbs::verbs::soft {

namespace {
// ::ffff:0:0/96 (RFC 4291, 2.5.5.2).
constexpr std::size_t kMappedPrefix = 12;
constexpr std::array<std::byte, kMappedPrefix> kMapped{
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0xff}, std::byte{0xff}};
}  // namespace

Gid gid_of(const IpAddress& address) {
  Gid gid;
  if (address.is_v4()) {
    std::ranges::copy(kMapped, gid.bytes.begin());
    std::ranges::copy(address.bytes(), gid.bytes.begin() + kMappedPrefix);
  } else {
    std::ranges::copy(address.bytes(), gid.bytes.begin());
  }
  return gid;
}

IpAddress address_of(const Gid& gid) {
  const std::span bytes(gid.bytes);
  if (std::ranges::equal(bytes.first(kMappedPrefix), kMapped)) {
    return IpAddress::from_bytes(bytes.subspan(kMappedPrefix));
  }
  return IpAddress::from_bytes(bytes);
}

const char* to_string(RejectReason reason) {
  switch (reason) {
    case RejectReason::NoResources:
      return "the other side is out of resources";
    case RejectReason::Timeout:
      return "the other side has waited too long";
    case RejectReason::InvalidCommId:
      return "the other side does not know the connection";
    case RejectReason::InvalidServiceId:
      return "nobody listens on that port";
    case RejectReason::InvalidTransportType:
      return "not a reliable connection";
    case RejectReason::StaleConnection:
      return "stale connection: the other side still has an old one";
    case RejectReason::InvalidPathMtu:
      return "the path MTU is not acceptable";
    case RejectReason::ConsumerDefined:
      return "rejected by the listener";
  }
  return "rejected for a reason of the InfiniBand specification, 12.6.7.2";
}

}  // namespace ipoverbs::verbs::soft
