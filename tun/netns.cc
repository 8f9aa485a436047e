#include "tun/netns.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

void enter(int fd, const std::string& name) {
  if (::setns(fd, CLONE_NEWNET) == 0) return;
  const int error = errno;
  if (error == EPERM) {
    throw UsageError(
        fmt::format("network namespace '{}' may not be entered: that needs CAP_SYS_ADMIN", name));
  }
  if (error == EINVAL) throw UsageError(fmt::format("'{}' is not a network namespace", name));
  throw SystemError(error, fmt::format("enter network namespace '{}'", name));
}

}  // namespace

NetworkNamespace::NetworkNamespace(const std::string& name) : name_(name) {
  if (name.empty()) return;
  const std::string path = name.find('/') == std::string::npos ? "/run/netns/" + name : name;
  fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd_) return;
  const int error = errno;
  if (error == ENOENT) {
    throw UsageError(fmt::format(
        "there is no network namespace '{}': {} does not exist ('ip netns add' makes one)", name,
        path));
  }
  throw UsageError(fmt::format("network namespace '{}' cannot be opened: {}: {}", name, path,
                               std::generic_category().message(error)));
}

void NetworkNamespace::run(const std::function<void()>& work) const {
  if (!fd_) {
    work();
    return;
  }
  std::exception_ptr thrown;
  std::thread visitor([&] {
    try {
      enter(fd_.get(), name_);
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  visitor.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ipoverbs::tun
