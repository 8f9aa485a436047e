// The limit on locked memory (RLIMIT_MEMLOCK, `ulimit -l`), which is what ENOMEM nearly always
// means when memory is registered or queues are made: the kernel pins those pages and counts them
// against the limit, unless the process has CAP_IPC_LOCK (drivers/infiniband/core/umem.c).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ipoverbs::verbs {

// The soft limit in bytes; nullopt if there is none, or if this thread's CAP_IPC_LOCK lifts it.
[[nodiscard]] std::optional<std::uint64_t> locked_memory_limit();

// One line for the user: what was tried, the limit, and the need. `needed` in bytes; 0 if only the
// driver knows.
[[nodiscard]] std::string locked_memory_message(const std::string& tried, std::uint64_t limit,
                                                std::uint64_t needed);

// Throws UsageError with locked_memory_message() if `error` is ENOMEM and a limit applies to this
// thread, SystemError(error, tried) otherwise.
[[noreturn]] void throw_allocation_error(int error, const std::string& tried, std::uint64_t needed);

}  // namespace ipoverbs::verbs
