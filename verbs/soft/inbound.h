// Inbound: checks the ICRC of what one far end sends.
#pragma once

#include <cstdint>
#include <span>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/soft/icrc.h"
#include "verbs/soft/ip_id.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

class Inbound {
 public:
  Inbound() = default;
  Inbound(const IpAddress& local, const IpAddress& remote) : local_(local), remote_(remote) {}

  // `datagram` came from `source_port`, the `segment`-th of those received as one.
  [[nodiscard]] bool intact(std::span<const std::byte> datagram, std::uint16_t source_port,
                            std::uint16_t segment, TimePoint now) noexcept {
    if (source_port != source_port_) {
      // A sender changes its port as seldom as never; receivers do not check it.
      source_port_ = source_port;
      flow_ = IcrcFlow(remote_, source_port, local_, kRocePort);
    }
    const auto id = icrc_matches(flow_, datagram, ids_.guess(segment));
    if (!id) return false;
    return !flow_.is_v4() || ids_.accept(*id, now);
  }

 private:
  IpAddress local_;
  IpAddress remote_;
  std::uint16_t source_port_ = 0;
  IcrcFlow flow_;
  IpIdTracker ids_;
};

}  // namespace ipoverbs::verbs::soft
