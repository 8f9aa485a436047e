// Between the two vocabularies of one thing: what the TUN floor calls offloads and what peers tell
// one another as capabilities (transport/hello.h). The two floors do not know each other.
#pragma once

#include <cstdint>

#include "transport/hello.h"
#include "tun/offloads.h"

namespace ipoverbs::daemon {

[[nodiscard]] constexpr std::uint32_t to_capabilities(const tun::Offloads& offloads) {
  using transport::Capability;
  const auto bit = [](bool set, Capability c) { return set ? static_cast<std::uint32_t>(c) : 0; };
  return bit(offloads.checksum, Capability::PartialChecksum) |
         bit(offloads.tso4, Capability::Tso4) | bit(offloads.tso6, Capability::Tso6) |
         bit(offloads.tso_ecn, Capability::TsoEcn) | bit(offloads.uso, Capability::Uso);
}

[[nodiscard]] constexpr tun::Offloads to_offloads(std::uint32_t capabilities) {
  using transport::Capability;
  const auto has = [capabilities](Capability c) {
    return (capabilities & static_cast<std::uint32_t>(c)) != 0;
  };
  return {.checksum = has(Capability::PartialChecksum),
          .tso4 = has(Capability::Tso4),
          .tso6 = has(Capability::Tso6),
          .tso_ecn = has(Capability::TsoEcn),
          .uso = has(Capability::Uso)};
}

}  // namespace ipoverbs::daemon
