// PortGroup: port 4791 of one underlay address, shared by the sockets of one device and by nobody
// else.
//
// With SO_REUSEPORT another process of the same user could join the group in silence and take a
// part of the datagrams. So a lock comes first: an abstract UNIX socket whose name holds the
// address; it belongs to the network namespace, as the port does, and goes with the process.
//
// Steering: a classic BPF program on the group reads the destination QP number of each datagram
// (payload bytes 5 to 7) and names the socket by its place in the group, which is the order of
// binding (net/core/sock_reuseport.c). Closing a socket would renumber the last one into its place,
// so sockets are kept until the group goes; one that is given back is given out again.
//
// Control thread.
#pragma once

#include <cstddef>
#include <vector>

#include "core/fd.h"
#include "core/ip.h"

namespace ipoverbs::verbs::soft {

class PortGroup {
 public:
  // Takes the lock and opens the socket of slot 0. `coalesce`: with UDP_GRO. Throws SystemError;
  // EADDRINUSE names who can have taken the port.
  explicit PortGroup(const Endpoint& local, bool coalesce = true);

  // Opens or reuses a socket: its slot, from 1. Throws SystemError; ENOSPC when all are in use.
  [[nodiscard]] unsigned acquire();
  void give_back(unsigned slot) noexcept;
  // The socket of a slot, as long as the group lives.
  [[nodiscard]] int socket(unsigned slot) const { return sockets_.at(slot).fd.get(); }
  // What its receive buffer holds, in bytes, as the kernel counts.
  [[nodiscard]] std::size_t buffer(unsigned slot) const { return sockets_.at(slot).buffer; }
  // What found a full buffer, in all slots, as the kernel counts: datagrams, a merged run as one.
  [[nodiscard]] std::uint64_t overflows() const;

 private:
  struct Member {
    Fd fd;
    std::size_t buffer = 0;
    bool used = false;
  };
  void open_socket();

  Endpoint local_;
  bool coalesce_;
  Fd lock_;
  std::vector<Member> sockets_;
};

}  // namespace ipoverbs::verbs::soft
