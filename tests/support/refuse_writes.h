// A kernel that refuses: write(2) fails, by default with EINVAL as it does for a TUN that does not
// take a super-packet.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace ipoverbs::support {

// From now on every write of more than `bytes` to `fd` fails with `error` in this thread and in
// those that it starts: there is no way back, so that a test does this in a thread of its own.
inline void refuse_long_writes(int fd, std::uint32_t bytes, int error = EINVAL) {
  constexpr auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  // Skips `skip` instructions unless the word is `k`.
  constexpr auto equal = [](std::uint32_t k, std::uint8_t skip) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, skip, k};
  };
  constexpr auto result = [](std::uint32_t k) { return sock_filter{BPF_RET | BPF_K, 0, 0, k}; };
  std::array<sock_filter, 8> program{
      load(offsetof(seccomp_data, nr)),
      equal(SYS_write, 5),
      load(offsetof(seccomp_data, args)),  // the lower half, on a little-endian machine
      equal(static_cast<std::uint32_t>(fd), 3),
      load(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)),
      sock_filter{BPF_JMP | BPF_JGT | BPF_K, 0, 1, bytes},
      result(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      result(SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{program.size(), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    throw SystemError(errno, "filter system calls");
  }
}

}  // namespace ipoverbs::support
