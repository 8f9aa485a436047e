// A status and a list of devices in which every field has a value of its own.
#pragma once

#include "daemon/status_report.h"
#include "verbs/open.h"

namespace ipoverbs::daemon {

[[nodiscard]] DaemonStatus example_status();
[[nodiscard]] verbs::DeviceList example_devices();

}  // namespace ipoverbs::daemon
