#include "tun/driver.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <fmt/format.h>

#include "core/error.h"
#include "tun/virtio_net.h"

namespace ipoverbs::tun {

namespace {

constexpr const char* kDevice = "/dev/net/tun";

// TUN_F_USO4 and TUN_F_USO6 of Linux 6.2, which older headers lack.
constexpr unsigned kTunFUso4 = 0x20;
constexpr unsigned kTunFUso6 = 0x40;

Fd open_device() {
  Fd fd(::open(kDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd) return fd;
  switch (const int error = errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      throw UsageError(fmt::format(
          "no {}: load the kernel module tun (modprobe tun), or give the container that device",
          kDevice));
    case EACCES:
    case EPERM:
      throw UsageError(
          fmt::format("{} may not be opened by this user: run as root, or let the user, the "
                      "service (DeviceAllow) or the container have that device",
                      kDevice));
    default:
      throw SystemError(error, fmt::format("open {}", kDevice));
  }
}

void attach_queue(int fd, const std::string& name, QueueMode mode, Attach attach) {
  unsigned flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (mode == QueueMode::Multi) flags |= IFF_MULTI_QUEUE;
  if (attach == Attach::Create) flags |= IFF_TUN_EXCL;
  ifreq request{};
  std::copy_n(name.data(), std::min<std::size_t>(name.size(), IFNAMSIZ - 1), request.ifr_name);
  request.ifr_flags = static_cast<short>(flags);
  if (::ioctl(fd, TUNSETIFF, &request) == 0) return;
  switch (const int error = errno) {
    case EPERM:
      throw UsageError(fmt::format(
          "no permission to {} {}: that needs CAP_NET_ADMIN, or a persistent TUN of that name that "
          "belongs to this user ('ip tuntap add {} mode tun user USER')",
          attach == Attach::Create ? "make the interface" : "attach to the interface", name, name));
    case EBUSY:
      throw UsageError(fmt::format("interface {} is in use by another process", name));
    default:
      throw SystemError(error, fmt::format("attach a queue to TUN {}", name));
  }
}

void set_option(int fd, unsigned long request, int value, const char* what) {
  if (::ioctl(fd, request, &value) != 0) throw SystemError(errno, what);
}

}  // namespace

Fd open_queue(const std::string& name, QueueMode mode, Attach attach) {
  Fd fd = open_device();
  attach_queue(fd.get(), name, mode, attach);
  // These are properties of the device and outlive their descriptor on a persistent one, where
  // somebody may have left other values.
  set_option(fd.get(), TUNSETVNETHDRSZ, static_cast<int>(sizeof(VirtioNetHeader)),
             "set the size of the virtio header (TUNSETVNETHDRSZ)");
  set_option(fd.get(), TUNSETVNETLE, 1, "make the virtio header little-endian (TUNSETVNETLE)");
  // The default: below it, writes fail with EAGAIN while the stack holds earlier packets.
  set_option(fd.get(), TUNSETSNDBUF, INT_MAX, "set the send buffer of the TUN (TUNSETSNDBUF)");
  return fd;
}

int set_offloads(int queue, const Offloads& offloads) noexcept {
  unsigned flags = 0;
  if (offloads.checksum) flags |= TUN_F_CSUM;
  if (offloads.tso4) flags |= TUN_F_TSO4;
  if (offloads.tso6) flags |= TUN_F_TSO6;
  if (offloads.tso_ecn) flags |= TUN_F_TSO_ECN;
  if (offloads.uso) flags |= kTunFUso4 | kTunFUso6;
  // This ioctl takes its argument by value.
  return ::ioctl(queue, TUNSETOFFLOAD, static_cast<unsigned long>(flags)) == 0 ? 0 : errno;
}

void set_carrier(int queue, bool on) {
  set_option(queue, TUNSETCARRIER, on ? 1 : 0, "set the carrier of the TUN (TUNSETCARRIER)");
}

}  // namespace ipoverbs::tun
