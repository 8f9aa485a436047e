#include "verbs/device.h"

#include <array>
#include <utility>

namespace ipoverbs::verbs {

const char* to_string(EventKind kind) {
  static constexpr std::array kNames{
      "route resolved", "connect request", "established",     "rejected",
      "failed",         "disconnected",    "address changed", "queue pair failed",
      "port down",      "port active",     "device removed"};
  static_assert(kNames.size() == static_cast<std::size_t>(EventKind::DeviceRemoved) + 1);
  return kNames.at(std::to_underlying(kind));
}

}  // namespace ipoverbs::verbs
