#include "bench/bounds/stop_signal.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "core/error.h"

namespace ipoverbs::bounds {

StopSignal::StopSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    throw SystemError(error, "block SIGTERM and SIGINT");
  }
  fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd_) throw SystemError(errno, "make a descriptor of signals");
}

}  // namespace ipoverbs::bounds
