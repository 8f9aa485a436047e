// Segments: a super-packet cut into the packets that it stands for, in software.
//
// Theory of operation. A super-packet (TSO, USO) is written to the TUN whole, and the kernel cuts
// it or keeps it whole. Where the kernel refuses one although it took such a packet at the start
// (its refusal depends on more than the type: Linux 6.10.3 wanted no last segment that is shorter),
// it is cut here, as net/ipv4/tcp_offload.c (tcp_gso_segment) and net/ipv4/udp_offload.c
// (__udp_gso_segment) would:
//
//   IP         lengths anew; IPv4: identification one more each, header checksum anew
//   TCP        sequence number on by what went before; CWR in the first alone, FIN and PSH in the
//              last alone; everything else, options included, in each
//   UDP        length anew
//   checksum   complete, whatever the super-packet's was
//
// It is a fallback: each byte is copied and summed. Nothing allocates or throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/byte_order.h"
#include "tun/virtio_net.h"

namespace ipoverbs::transport {

class Segments {
 public:
  // `packet` and `header` have passed tun::check(), and header.gso_type is not NONE. The packet
  // outlives this.
  Segments(std::span<const std::byte> packet, const tun::VirtioNetHeader& header) noexcept;

  // How many there are; at least one.
  [[nodiscard]] std::size_t count() const noexcept;
  // Bytes of the longest.
  [[nodiscard]] std::size_t longest() const noexcept;

  // Writes the next one, without a virtio header, at the start of `out`, which has at least
  // longest() bytes, and returns its length; 0 after the last.
  [[nodiscard]] std::size_t next(std::span<std::byte> out) noexcept;

 private:
  void write_ip_header(std::span<std::byte> segment) const noexcept;
  void write_tcp_header(std::span<std::byte> tcp, bool last) const noexcept;
  void write_checksums(std::span<std::byte> segment) const noexcept;

  std::span<const std::byte> packet_;
  std::size_t transport_;  // where TCP or UDP begins
  std::size_t payload_;    // where its payload begins
  std::size_t size_;       // bytes of payload in each segment but the last
  bool tcp_;
  std::size_t index_ = 0;  // of the next one
};

}  // namespace ipoverbs::transport
