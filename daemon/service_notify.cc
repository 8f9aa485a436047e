#include "daemon/service_notify.h"

#include <systemd/sd-daemon.h>

namespace ipoverbs::daemon {

void notify_ready(const std::string& status) noexcept {
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str());
}

void notify_stopping() noexcept { ::sd_notify(0, "STOPPING=1"); }

}  // namespace ipoverbs::daemon
