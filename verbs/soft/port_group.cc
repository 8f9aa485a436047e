#include "verbs/soft/port_group.h"

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/soft/qp_numbers.h"
#include "verbs/soft/udp_socket.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr std::size_t kReceiveBuffer = std::size_t{4} << 20;  // asked for; the kernel doubles it

// An abstract name (unix(7)): a zero byte, then these characters, no terminator.
Fd take_lock(const Endpoint& local) {
  const std::string name =
      fmt::format("ipoverbs-roce-{}%{}", local.address.to_string(), local.scope);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  Fd lock(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!lock) throw SystemError(errno, "open a UNIX socket");
  if (::bind(lock.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    throw SystemError(errno, fmt::format("take port 4791 of {}, which another software device has",
                                         local.address.to_string()));
  }
  return lock;
}

// Returns the slot in the number; 0 for QP1 and for slots that don't exist. A datagram too short to
// have a number ends the program, with 0 too.
void steer(int fd, std::uint32_t sockets) {
  constexpr std::uint32_t kQp1 = 1;
  std::array<sock_filter, 7> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kQp1, 3, 0),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSlots - 1),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sockets, 1, 0),
      BPF_STMT(BPF_RET | BPF_A, 0),
      BPF_STMT(BPF_RET | BPF_K, kControlSlot),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof filter) != 0) {
    throw SystemError(errno, "steer port 4791 by QP number");
  }
}

}  // namespace

PortGroup::PortGroup(const Endpoint& local, bool coalesce)
    : local_(local), coalesce_(coalesce), lock_(take_lock(local)) {
  open_socket();
  sockets_.front().used = true;
}

void PortGroup::open_socket() {
  Member member{open_receive_socket(local_, coalesce_), 0, false};
  member.buffer = grow_receive_buffer(member.fd.get(), kReceiveBuffer);
  sockets_.push_back(std::move(member));
  steer(sockets_.front().fd.get(), static_cast<std::uint32_t>(sockets_.size()));
}

unsigned PortGroup::acquire() {
  auto free = std::ranges::find_if(sockets_, [](const Member& member) { return !member.used; });
  if (free == sockets_.end()) {
    if (sockets_.size() == kSlots) {
      throw SystemError(ENOSPC, fmt::format("open more than {} completion queues", kSlots - 1));
    }
    open_socket();
    free = sockets_.end() - 1;
  }
  free->used = true;
  return static_cast<unsigned>(free - sockets_.begin());
}

std::uint64_t PortGroup::overflows() const {
  std::uint64_t sum = 0;
  for (const Member& member : sockets_) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t size = sizeof memory;
    if (::getsockopt(member.fd.get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &size) == 0) {
      sum += memory[SK_MEMINFO_DROPS];
    }
  }
  return sum;
}

void PortGroup::give_back(unsigned slot) noexcept { sockets_[slot].used = false; }

}  // namespace ipoverbs::verbs::soft
