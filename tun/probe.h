// Finding out what a TUN can do, by doing it.
#pragma once

#include "tun/offloads.h"

namespace ipoverbs::tun {

// Tries which offloads TUNSETOFFLOAD takes, from the largest set down, and leaves the device with
// none of them; and writes one packet of each kind to `queue`, because public kernels accept the
// offload and refuse the packet (Linux 6.10.3 and 6.6.44 a super-packet whose last segment is
// shorter, for one). The packets go from documentation addresses to multicast groups for
// documentation (RFC 6676) with a hop limit of 1: nobody receives, answers or forwards them.
//
// The interface may be down: then nothing of it reaches the IP stack at all, and the kernel says
// EIO only after it has judged the header (drivers/net/tun.c, tun_get_user()). `queue` is
// nonblocking. Throws SystemError for an answer that tells neither yes nor no.
[[nodiscard]] ProbedOffloads probe_offloads(int queue);

}  // namespace ipoverbs::tun
