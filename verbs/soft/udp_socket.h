// UDP sockets as RoCEv2 needs them, one function a purpose.
//
// Both kinds are unconnected and have IP_MTU_DISCOVER = IP_PMTUDISC_DO: then Linux sends DF and
// IPv4 identification 0, or 0, 1, 2, ... within one UDP_SEGMENT send (net/ipv4/route.c,
// ip_select_ident; net/ipv4/udp_offload.c), and the ICRC, which covers both, can be computed
// beforehand. Nothing is fragmented.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/fd.h"
#include "core/ip.h"

namespace ipoverbs::verbs::soft {

// Bound to `local` and port 4791, one of a group (SO_REUSEPORT). Delivers runs of datagrams as one
// (UDP_GRO, if `coalesce`), each with its traffic class, and IPv6 datagrams without a checksum too,
// which is how RoCE is sent (RFC 6936). Throws SystemError.
[[nodiscard]] Fd open_receive_socket(const Endpoint& local, bool coalesce = true);

// Bound to `local` and a port of 49152 to 65535 that nobody else has (vol. 1 annex A17.9: the port
// spreads flows over paths), the first free one from a place that `random` names; `local.port` is
// set to it. Throws SystemError.
[[nodiscard]] Fd open_send_socket(Endpoint& local, std::uint64_t random);

// Asks for a receive buffer of `bytes`, beyond net.core.rmem_max where the process may. Returns
// what the kernel counts against it (SO_RCVBUF as getsockopt(2) reports it).
[[nodiscard]] std::size_t grow_receive_buffer(int fd, std::size_t bytes);
// The same for the send buffer.
void grow_send_buffer(int fd, std::size_t bytes);

// DSCP and ECN of all that is sent from now on; false if the kernel refuses.
[[nodiscard]] bool set_traffic_class(int fd, Family family, std::uint8_t traffic_class) noexcept;

}  // namespace ipoverbs::verbs::soft
