// Explicit congestion notification (RFC 3168): the two low bits of a traffic class.
//
// Who sets Capable0 asks the queues on the way to mark rather than drop; one that does turns it
// into Congested.
#pragma once

#include <cstdint>

namespace ipoverbs::verbs::soft {

enum class Ecn : std::uint8_t { NotCapable = 0, Capable1 = 1, Capable0 = 2, Congested = 3 };

[[nodiscard]] constexpr Ecn ecn_of(std::uint8_t traffic_class) {
  return static_cast<Ecn>(traffic_class & 3U);
}
[[nodiscard]] constexpr std::uint8_t with_ecn(std::uint8_t traffic_class, Ecn ecn) {
  return static_cast<std::uint8_t>((traffic_class & ~3U) | static_cast<std::uint8_t>(ecn));
}

}  // namespace ipoverbs::verbs::soft
