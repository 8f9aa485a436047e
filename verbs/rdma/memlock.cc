#include "verbs/rdma/memlock.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::verbs {

namespace {
// capget(2) on this thread; glibc has no wrapper.
bool has_ipc_lock() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective >> CAP_IPC_LOCK & 1U) != 0;
}
}  // namespace

std::optional<std::uint64_t> locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  if (has_ipc_lock()) return std::nullopt;
  return limit.rlim_cur;
}

std::string locked_memory_message(const std::string& tried, std::uint64_t limit,
                                  std::uint64_t needed) {
  const std::string need =
      needed == 0 ? "more is" : fmt::format("{} KiB for this alone are", (needed + 1023) / 1024);
  return fmt::format(
      "cannot {}: the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l) is {} KiB and {} needed; "
      "raise it with 'ulimit -l unlimited', LimitMEMLOCK=infinity in a service, or a memlock line "
      "in /etc/security/limits.conf",
      tried, limit / 1024, need);
}

void throw_allocation_error(int error, const std::string& tried, std::uint64_t needed) {
  if (error == ENOMEM) {
    if (const auto limit = locked_memory_limit()) {
      throw UsageError(locked_memory_message(tried, *limit, needed));
    }
  }
  throw SystemError(error, tried);
}

}  // namespace ipoverbs::verbs
