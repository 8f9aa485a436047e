// StopSignal: SIGTERM and SIGINT as a descriptor.
#pragma once

#include "core/fd.h"

namespace ipoverbs::bounds {

// Blocks both signals in the calling thread and in those that it starts later.
class StopSignal {
 public:
  // Throws SystemError.
  StopSignal();
  // Readable once one of the signals has come.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

}  // namespace ipoverbs::bounds
