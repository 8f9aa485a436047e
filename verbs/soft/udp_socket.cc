#include "verbs/soft/udp_socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

namespace {

// linux/udp.h, which cannot be included beside netinet/udp.h.
constexpr int kUdpNoCheck6Rx = 102;

bool set_option(int fd, int level, int name, int value) noexcept {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

void require_option(int fd, int level, int name, int value, const char* what) {
  if (!set_option(fd, level, name, value)) {
    throw SystemError(errno, fmt::format("set {} on a UDP socket", what));
  }
}

Fd open_socket(Family family) {
  const bool v4 = family == Family::v4;
  Fd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw SystemError(errno, "open a UDP socket");
  if (v4) {
    require_option(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER");
  } else {
    require_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
    require_option(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO,
                   "IPV6_MTU_DISCOVER");
  }
  return fd;
}

int bind_to(int fd, const Endpoint& local) {
  const sockaddr_storage address = local.to_sockaddr();
  const socklen_t size = local.address.is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 ? 0 : errno;
}

}  // namespace

Fd open_receive_socket(const Endpoint& local, bool coalesce) {
  Fd fd = open_socket(local.address.family());
  require_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
  if (local.address.is_v4()) {
    require_option(fd.get(), IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
  } else {
    require_option(fd.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
    require_option(fd.get(), IPPROTO_UDP, kUdpNoCheck6Rx, 1, "UDP_NO_CHECK6_RX");
  }
  // Without it (Linux before 5.0) datagrams just come one by one.
  if (coalesce) static_cast<void>(set_option(fd.get(), IPPROTO_UDP, UDP_GRO, 1));
  const Endpoint at{local.address, kRocePort, local.scope};
  if (const int error = bind_to(fd.get(), at); error != 0) {
    const char* const hint =
        error == EADDRINUSE ? " (has the kernel module rdma_rxe taken it?)" : "";
    throw SystemError(error, fmt::format("bind UDP {}{}", at.to_string(), hint));
  }
  return fd;
}

Fd open_send_socket(Endpoint& local, std::uint64_t random) {
  constexpr std::uint64_t kFirstPort = 0xc000;
  constexpr std::uint64_t kPorts = 0x4000;
  Fd fd = open_socket(local.address.family());
  for (std::uint64_t i = 0; i < kPorts; ++i) {
    local.port = static_cast<std::uint16_t>(kFirstPort + (random + i) % kPorts);
    const int error = bind_to(fd.get(), local);
    if (error == 0) return fd;
    if (error != EADDRINUSE) {
      throw SystemError(error, fmt::format("bind UDP {}", local.to_string()));
    }
  }
  throw SystemError(EADDRINUSE, fmt::format("bind a UDP port of {}", local.address.to_string()));
}

std::size_t grow_receive_buffer(int fd, std::size_t bytes) {
  const int wanted = static_cast<int>(bytes);
  if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, wanted)) {
    static_cast<void>(set_option(fd, SOL_SOCKET, SO_RCVBUF, wanted));
  }
  int got = 0;
  socklen_t size = sizeof got;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &size) != 0) {
    throw SystemError(errno, "read SO_RCVBUF of a UDP socket");
  }
  return static_cast<std::size_t>(got);
}

void grow_send_buffer(int fd, std::size_t bytes) {
  const int wanted = static_cast<int>(bytes);
  if (!set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, wanted)) {
    static_cast<void>(set_option(fd, SOL_SOCKET, SO_SNDBUF, wanted));
  }
}

bool set_traffic_class(int fd, Family family, std::uint8_t traffic_class) noexcept {
  return family == Family::v4 ? set_option(fd, IPPROTO_IP, IP_TOS, traffic_class)
                              : set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
}

}  // namespace ipoverbs::verbs::soft
