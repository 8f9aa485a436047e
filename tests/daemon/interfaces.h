// The interfaces of a machine that no test needs to have.
#pragma once

#include <cstdint>
#include <string>

namespace ipoverbs::daemon {

// Index of the only interface that there is, eth0; 0 for any other name.
[[nodiscard]] inline std::uint32_t index_of_eth0(const std::string& name) {
  return name == "eth0" ? 7 : 0;
}

}  // namespace ipoverbs::daemon
