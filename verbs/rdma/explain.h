// Why the kernel would not bind to an underlay address, in the user's words.
#pragma once

#include <string>

#include "verbs/open.h"
#include "verbs/rdma/host.h"

namespace ipoverbs::verbs {

// One line that says what is wrong and what would be right, from what `host` has; "" if nothing is
// wrong there.
[[nodiscard]] std::string explain_refusal(const DeviceRequest& request, const Host& host);

// Why the address is not on the device that was asked for; "" if it is, or no device was named, or
// none has the address.
[[nodiscard]] std::string explain_other_device(const DeviceRequest& request, const Host& host);

}  // namespace ipoverbs::verbs
