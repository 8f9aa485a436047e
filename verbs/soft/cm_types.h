// Identifiers and codes of the connection manager (InfiniBand Architecture vol. 1, chapter 12).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/ip.h"
#include "core/strong.h"
#include "verbs/device.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

// One side's name for a connection; the other side answers to it. 0 is "none".
using CommId = Strong<struct CommIdTag, std::uint32_t>;
// Of the channel adapter, unique in the world: with a communication ID it names a connection for
// good, so every instance of the software device draws a new one.
using CaGuid = Strong<struct CaGuidTag, std::uint64_t>;
using ServiceId = Strong<struct ServiceIdTag, std::uint64_t>;

// A RoCEv2 GID is the port's IP address: IPv6 as it is, IPv4 as ::ffff:a.b.c.d (annex A17).
struct Gid {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const Gid&, const Gid&) = default;
};
[[nodiscard]] Gid gid_of(const IpAddress& address);
[[nodiscard]] IpAddress address_of(const Gid& gid);

// RDMA_PS_TCP, the port space of rdma_cm's reliable connections (include/uapi/rdma/rdma_user_cm.h).
inline constexpr std::uint64_t kPortSpaceTcp = 0x0106;
[[nodiscard]] constexpr ServiceId service_of_port(std::uint16_t port) {
  return ServiceId(kPortSpaceTcp << 16U | port);
}
// nullopt for a service of another port space.
[[nodiscard]] constexpr std::optional<std::uint16_t> port_of_service(ServiceId service) {
  if (service.value() >> 16U != kPortSpaceTcp) {
    return std::nullopt;
  }
  return static_cast<std::uint16_t>(service.value() & 0xffffU);
}

enum class TransportService : std::uint8_t {  // 2 bits
  ReliableConnection = 0,
  UnreliableConnection = 1,
  ReliableDatagram = 2,
  Extended = 3,
};

// Which message an MRA or REJ answers. 2 bits; 3 is unassigned and kept.
enum class CmAnswered : std::uint8_t { Request = 0, Reply = 1, Other = 2 };

// 16 bits on the wire, any value may come (12.6.7.2; kernel include/rdma/ib_cm.h). Named are those
// that are sent or treated apart.
enum class RejectReason : std::uint16_t {
  NoResources = 3,
  Timeout = 4,
  InvalidCommId = 6,
  InvalidServiceId = 8,
  InvalidTransportType = 9,
  StaleConnection = 10,
  InvalidPathMtu = 26,
  ConsumerDefined = 28,
};
// In words, for the log: "no listener on that service", "reject reason 12 (...)".
[[nodiscard]] const char* to_string(RejectReason reason);

// The codes of timeouts: 4.096 us * 2^n. 31 is over two hours; 0 is 4.096 us here.
[[nodiscard]] constexpr Duration timeout_of_code(std::uint8_t code) {
  return std::chrono::nanoseconds(std::int64_t{4096} << (code & 31U));
}

// The codes of a path MTU: 1..5 for 256..4096 bytes; nullopt otherwise.
[[nodiscard]] constexpr std::optional<PathMtu> path_mtu_of_code(std::uint8_t code) {
  if (code < 1 || code > 5) {
    return std::nullopt;
  }
  return PathMtu(std::uint32_t{128} << code);
}

}  // namespace ipoverbs::verbs::soft
