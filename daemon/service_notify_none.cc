#include "daemon/service_notify.h"

namespace ipoverbs::daemon {

void notify_ready(const std::string&) noexcept {}

void notify_stopping() noexcept {}

}  // namespace ipoverbs::daemon
