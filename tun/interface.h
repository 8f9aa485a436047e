// Interface: a TUN interface, its addresses and its routes, from creation to removal.
//
// Theory of operation. create() makes the TUN (or attaches to a persistent one that stands idle),
// with one descriptor for each queue, and configures it by netlink: MTU, queue length, GSO limits,
// up, addresses, routes. Reading and writing packets is the owner's business, on queues(): each
// read and write carries the 10-byte VirtioNetHeader (tun/virtio_net.h) in front, little-endian on
// every machine.
//
// Namespace. With Config::netns the interface is born in that namespace: a short-lived thread
// enters it to open /dev/net/tun and the netlink sockets, which stay bound to the namespace where
// they were opened (drivers/net/tun.c takes it from the socket of the descriptor), so that
// everything afterwards works from any thread of this process.
//
// Ownership. One ipoverbs owns an interface: the lock is a UNIX socket with an abstract name,
// "ipoverbs-tun/<name>", in the interface's own namespace, which vanishes with the process. The
// kernel alone would let a second process attach to a multi-queue TUN in silence. A TUN that any
// other program is attached to is refused too. Everything that create() adds is removed by the
// destructor: a TUN made here vanishes with its descriptors; of a persistent one, addresses,
// routes, limits, addr_gen_mode and up/down are put back as they were.
//
// IPv6. The interface gets addr_gen_mode none: no link-local address of the kernel's own making,
// hence no router solicitation. A TUN has IFF_NOARP, so that no neighbour is solicited and no
// address is checked for duplicates. Who wants a link-local address configures one.
//
// Down and up. "ip link set t0 down" takes routes and IPv6 addresses away. Interface listens to
// RTNLGRP_LINK: whoever waits for event_fd() calls process_events(), which puts back what is
// missing once the interface is up again. While it is down, a write to a queue fails with EIO and
// reads find nothing; the descriptors stay good. After "ip link del" reads and writes fail with
// EBADFD and the state is Removed: the owner has to start afresh.
//
// Privileges. Making a TUN and configuring it need CAP_NET_ADMIN, and entering a namespace
// CAP_SYS_ADMIN. Without CAP_NET_ADMIN a persistent TUN that belongs to the user
// ("ip tuntap add t0 mode tun user U multi_queue") serves, if somebody has given it MTU, addresses
// and routes and has brought it up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/log.h"
#include "tun/config.h"
#include "tun/offloads.h"
#include "tun/statistics.h"

namespace ipoverbs::tun {

enum class LinkState : std::uint8_t { Up, Down, Removed };

// All functions are for one thread, the control thread, except where noted.
class Interface {
 public:
  // Makes and configures the interface. `logger` outlives it. Throws UsageError, one line, for what
  // the user must mend: what validate() refuses, no /dev/net/tun, no permission, no such namespace,
  // a name that is taken by another interface or another process, an address or route that
  // conflicts; SystemError for what the kernel refuses otherwise. Leaves nothing behind when it
  // throws.
  [[nodiscard]] static Interface create(const Config& config, Logger& logger);

  Interface(Interface&&) noexcept;
  Interface& operator=(Interface&&) noexcept;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  // Removes what create() made. Nobody may use the queues any more.
  ~Interface();

  // One descriptor a queue, nonblocking and close-on-exec, owned by the Interface. Read and written
  // by any threads.
  [[nodiscard]] std::span<const int> queues() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] int index() const;
  // Of the ring behind each queue, in packets.
  [[nodiscard]] std::uint32_t queue_length() const;

  // What was found by trying when the interface was made.
  [[nodiscard]] const ProbedOffloads& offloads() const;
  // What packets that are read may leave undone from now on, for all queues: what the far end is
  // known to write. What offloads().read lacks is left out; returns what was set. Packets that wait
  // in a queue keep the form they have. From the start it is what this host itself can both read
  // and write. Throws SystemError.
  Offloads set_read_offloads(const Offloads& wanted);

  // The counters now. Throws SystemError (ENODEV after removal).
  [[nodiscard]] Statistics statistics() const;

  // Tells the kernel whether the link has a carrier (TUNSETCARRIER, Linux 5.0): without it the
  // interface stays up, keeps its addresses and routes, and drops what is sent. Throws SystemError.
  void set_carrier(bool on);

  // Readable when process_events() has work.
  [[nodiscard]] int event_fd() const;
  // Takes in what happened to the interface; on the way up again, puts back addresses and routes.
  // Logs changes and what could not be put back; never throws. Returns the state as last known.
  LinkState process_events() noexcept;

 private:
  class Impl;
  explicit Interface(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipoverbs::tun
