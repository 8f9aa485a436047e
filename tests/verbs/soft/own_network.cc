#include "tests/verbs/soft/own_network.h"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/fd.h"
#include "core/ip.h"

namespace ipoverbs::verbs::soft::test {

namespace {

std::string& reason() {
  static std::string text;
  return text;
}

void write_file(const char* path, const std::string& text) {
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t n = ::write(fd.get(), text.data(), text.size());
}

// As root, or as an ordinary user in a user namespace.
bool enter_namespace() {
  if (::unshare(CLONE_NEWNET) == 0) return true;
  const std::string map = fmt::format("0 {} 1", ::getuid());
  const std::string groups = fmt::format("0 {} 1", ::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", map);
  write_file("/proc/self/gid_map", groups);
  return true;
}

bool bring_loopback_up() {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

bool set_loopback_mtu(int mtu) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = mtu;
  return ::ioctl(fd.get(), SIOCSIFMTU, &request) == 0;
}

namespace {

// RTM_NEWADDR on the loopback interface, whose index is 1 in every namespace (rtnetlink(7)).
bool add_address(const IpAddress& address) {
  struct Message {
    nlmsghdr header;
    ifaddrmsg body;
    rtattr attribute;
    std::array<std::byte, 16> value;
  } message{};
  const auto size = address.bytes().size();
  message.header.nlmsg_len = static_cast<std::uint32_t>(sizeof message - 16 + size);
  message.header.nlmsg_type = RTM_NEWADDR;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
  message.body.ifa_family = address.is_v4() ? AF_INET : AF_INET6;
  message.body.ifa_prefixlen = static_cast<std::uint8_t>(address.bits());
  message.body.ifa_flags = IFA_F_NODAD;
  message.body.ifa_index = 1;
  message.attribute.rta_type = IFA_LOCAL;
  message.attribute.rta_len = static_cast<std::uint16_t>(sizeof(rtattr) + size);
  std::memcpy(message.value.data(), address.bytes().data(), size);
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (::send(fd.get(), &message, message.header.nlmsg_len, 0) < 0) return false;
  struct Answer {
    nlmsghdr header;
    nlmsgerr error;
    std::array<std::byte, 256> more;
  } answer{};
  if (::recv(fd.get(), &answer, sizeof answer, 0) < 0) return false;
  errno = -answer.error.error;
  return answer.error.error == 0;
}

}  // namespace

void OwnNetwork::SetUp() {
  if (!enter_namespace() || !bring_loopback_up()) {
    reason() = fmt::format("no network namespace of our own: {}", std::strerror(errno));
    return;
  }
  for (const char* text : {"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"}) {
    if (!add_address(*IpAddress::parse(text))) {
      reason() = fmt::format("address {} on lo: {}", text, std::strerror(errno));
    }
  }
}

const std::string& why_no_network() { return reason(); }

}  // namespace ipoverbs::verbs::soft::test
