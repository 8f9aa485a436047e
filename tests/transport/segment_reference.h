// What a super-packet stands for, in the plainest way: every segment built whole from the fields
// that it should have.
#pragma once

#include <vector>

#include "tests/support/packets.h"
#include "tun/virtio_net.h"

namespace ipoverbs::transport::reference {

// `packet` and `header` have passed tun::check().
[[nodiscard]] std::vector<support::Bytes> segments(const support::Bytes& packet,
                                                   const tun::VirtioNetHeader& header);

}  // namespace ipoverbs::transport::reference
