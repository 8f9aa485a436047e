// Fragments: an IPv4 packet cut for a peer with a smaller MTU.
//
// Theory of operation. The sender's kernel knows the MTU of its own interface alone (too_big.h).
// What may not be fragmented is answered; what may be is cut here, as a router would (RFC 791,
// section 3.2; RFC 1812, section 5.2.6): each fragment is as long as the MTU and multiples of 8
// bytes allow, with the packet's identification, its offset in the whole, and MF ("more fragments")
// in all but the last, in which it stays as it was. The first has all options, the others those
// whose type says that they are copied (RFC 791, section 3.1).
//
// It is a fallback: each byte is copied, by the worker once more before. Nothing allocates or
// throws.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/ip.h"

namespace ipoverbs::transport {

// Whether `packet`, which has passed read_addresses(), is IPv4 and has DF ("don't fragment") clear.
// A fragment that reaches beyond what a datagram can be is no packet that could be put together.
[[nodiscard]] bool may_fragment(std::span<const std::byte> packet) noexcept;

class Fragments {
 public:
  // Of `packet`, which has passed may_fragment(), which is larger than `mtu`, whose checksums are
  // complete, and which outlives this. `mtu` is at least 68 (RFC 791, section 3.2).
  Fragments(std::span<const std::byte> packet, IpMtu mtu) noexcept;

  // How many are still to be written.
  [[nodiscard]] std::size_t left() const noexcept;
  // Writes the next one at the start of `out`, which has at least `mtu` bytes, and returns its
  // length; 0 after the last.
  [[nodiscard]] std::size_t next(std::span<std::byte> out) noexcept;

 private:
  static constexpr std::size_t kMaxHeader = 60;

  [[nodiscard]] std::span<const std::byte> header() const noexcept;
  // Bytes of payload in each fragment but the last that has a header of so many bytes.
  [[nodiscard]] std::size_t room(std::size_t header) const noexcept {
    return (mtu_ - header) / 8 * 8;
  }
  void copy_options(std::span<const std::byte> options) noexcept;

  std::span<const std::byte> first_header_;
  std::span<const std::byte> payload_;
  std::size_t mtu_;
  std::array<std::byte, kMaxHeader> later_header_{};
  std::size_t later_header_size_ = 0;
  std::size_t at_ = 0;  // bytes of payload that are written
};

}  // namespace ipoverbs::transport
