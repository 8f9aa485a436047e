// The TUN driver's own interface: /dev/net/tun and its ioctls (Documentation/networking/tuntap.rst,
// drivers/net/tun.c).
#pragma once

#include <string>

#include "core/fd.h"
#include "tun/offloads.h"

namespace ipoverbs::tun {

enum class QueueMode : unsigned char { Single, Multi };
enum class Attach : unsigned char {
  Create,    // fail if the interface exists
  Existing,  // a further queue, or the first one of a persistent TUN
};

// Opens /dev/net/tun in the network namespace of the calling thread and attaches it to `name` as
// one queue: nonblocking, close-on-exec, no packet information, a virtio header of 10 bytes,
// little-endian. Throws UsageError that says what is missing (the device, the module, the
// permission) or that the name is taken; SystemError otherwise.
[[nodiscard]] Fd open_queue(const std::string& name, QueueMode mode, Attach attach);

// TUNSETOFFLOAD: holds for the device, not for the queue. Returns an errno value, 0 if taken,
// EINVAL if this kernel does not know one of them.
[[nodiscard]] int set_offloads(int queue, const Offloads& offloads) noexcept;

// TUNSETCARRIER. Throws SystemError.
void set_carrier(int queue, bool on);

}  // namespace ipoverbs::tun
