// What the service manager is told (sd_notify(3)). Built over libsystemd where that was found, and
// as nothing where not; without a service manager it does nothing either way.
#pragma once

#include <string>

namespace ipoverbs::daemon {

// The daemon serves: carried traffic, answers on its control socket.
void notify_ready(const std::string& status) noexcept;
void notify_stopping() noexcept;

}  // namespace ipoverbs::daemon
