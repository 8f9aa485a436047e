// What the devices of one loopback network share: the mutex and all that it guards.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/ip.h"
#include "tests/support/loopback_connection.h"
#include "tests/support/loopback_device.h"
#include "tests/support/loopback_queues.h"
#include "tests/support/mutex.h"

namespace ipoverbs::support {

// How many objects there are and have been, and which creation is to fail.
struct Census {
  std::size_t live = 0;
  std::uint64_t created = 0;
  std::uint64_t fail_in = 0;  // 1: the next one; 0: none

  // One more object; throws SystemError(ENOMEM) instead if this is the one that fails.
  void create(const std::string& tried) {
    if (fail_in > 0 && --fail_in == 0) throw SystemError(ENOMEM, tried);
    ++live;
    ++created;
  }
};

struct Fabric {
  mutable Mutex mutex;
  Partitions partitions IPOVERBS_GUARDED_BY(mutex);
  Queues queues IPOVERBS_GUARDED_BY(mutex){partitions};
  Exchange exchange IPOVERBS_GUARDED_BY(mutex){queues, partitions};
  Census census IPOVERBS_GUARDED_BY(mutex);
};

// Makes verbs::Device on top of `fabric`, which outlives it.
[[nodiscard]] std::unique_ptr<verbs::Device> make_loopback_device(Fabric& fabric,
                                                                  const IpAddress& underlay,
                                                                  const LoopbackOptions& options);

}  // namespace ipoverbs::support
