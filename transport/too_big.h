// TooBig: the answer to a packet that is larger than a peer's MTU.
//
// Theory of operation. The sender's kernel knows the MTU of its own interface alone. Where a peer's
// is smaller, a packet that may not be fragmented is answered as a router would: ICMP
// "fragmentation needed" (RFC 792, type 3, code 4, with the MTU of RFC 1191, section 4) or ICMPv6
// "packet too big" (RFC 4443, section 3.2), and the kernel remembers it for that destination. Of a
// super-packet the answer quotes the first segment's header.
//
// - The answer comes from the packet's destination: Linux ignores one that comes from the address
//   to which it goes.
// - None is made for an IPv4 packet that may be fragmented, a fragment but the first, an ICMP error
//   or a multicast packet (RFC 1122, section 3.2.2; RFC 4443, section 2.4 (e)).
// - They are few: kBurst at once, then kPerSecond (RFC 4443, section 2.4 (f)).
//
// Nothing allocates or throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock.h"
#include "core/ip.h"

namespace ipoverbs::transport {

// The longest answer: 1280 bytes over IPv6 (RFC 4443), 576 over IPv4 (RFC 1812, section 4.3.2.3).
inline constexpr std::size_t kMaxTooBig = 1280;

// Writes the answer to `packet`, which has passed read_addresses(), at the start of `out`
// (kMaxTooBig bytes), and returns its length; 0 if none may be made. `largest`: bytes of the packet
// or of its largest segment.
[[nodiscard]] std::size_t write_too_big(std::span<std::byte> out, std::span<const std::byte> packet,
                                        std::size_t largest, IpMtu mtu) noexcept;

// How many answers may be given.
class TooBigBudget {
 public:
  static constexpr unsigned kBurst = 10;
  static constexpr unsigned kPerSecond = 100;

  [[nodiscard]] bool take(TimePoint now) noexcept {
    constexpr Duration kEach = Duration(std::chrono::seconds(1)) / kPerSecond;
    if (full_at_ < now) full_at_ = now;
    if (full_at_ + kEach > now + kEach * kBurst) return false;
    full_at_ += kEach;
    return true;
  }

 private:
  TimePoint full_at_{};  // when all of the burst may be given again
};

}  // namespace ipoverbs::transport
