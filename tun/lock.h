// The lock that keeps a second daemon off an interface.
#pragma once

#include <string>

#include "core/fd.h"

namespace ipoverbs::tun {

// Takes the lock of interface `name` in the network namespace of the calling thread: a listening
// UNIX socket with the abstract name "ipoverbs-tun/<name>" (unix(7): such names belong to the
// network namespace and vanish with the socket). The lock is held as long as the descriptor is
// open. Throws UsageError that names the process which holds it.
[[nodiscard]] Fd lock_interface(const std::string& name);

}  // namespace ipoverbs::tun
