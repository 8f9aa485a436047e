// What `ipoverbs devices` prints: every port of every RDMA device, and whether it can be used.
//
// The keys of the JSON are described in docs/manual.md.
#pragma once

#include <string>

#include "verbs/open.h"

namespace ipoverbs::daemon {

[[nodiscard]] std::string format_devices_text(const verbs::DeviceList& devices);
[[nodiscard]] std::string format_devices_json(const verbs::DeviceList& devices);

}  // namespace ipoverbs::daemon
