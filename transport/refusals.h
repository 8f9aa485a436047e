// Refusals: which work the kernel here will not be asked to do any more.
//
// Theory of operation. What a TUN takes is tried when it is made (tun/probe.h), and every virtio
// header is checked before it is written, so that a kernel without faults refuses nothing. One that
// does all the same refuses with EINVAL, and that packet's work is done in software. After kLatch
// refusals of one kind that kind is withdrawn: no packet of it is offered to the kernel again, and
// peers are told, who then ask their own kernels for no such packets. Withdrawn is withdrawn until
// the process ends: a kernel does not mend.
//
// A Refusals is one worker's; the node tells each worker what another has withdrawn.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "transport/hello.h"

namespace ipoverbs::transport {

class Refusals {
 public:
  static constexpr std::uint32_t kLatch = 8;

  // The kernel refused a packet whose header asks for `work`. True if that withdraws it.
  [[nodiscard]] bool on_refused(Capability work) noexcept {
    const std::uint32_t bit = std::to_underlying(work);
    std::uint32_t& count = counts_[static_cast<std::size_t>(std::countr_zero(bit))];
    if (++count != kLatch) return false;
    withdrawn_ |= bit;
    return true;
  }
  void withdraw(std::uint32_t capabilities) noexcept { withdrawn_ |= capabilities; }

  [[nodiscard]] bool is_withdrawn(Capability work) const noexcept {
    return (withdrawn_ & std::to_underlying(work)) != 0;
  }
  // Bits of Capability.
  [[nodiscard]] std::uint32_t withdrawn() const noexcept { return withdrawn_; }

 private:
  std::array<std::uint32_t, 32> counts_{};
  std::uint32_t withdrawn_ = 0;
};

}  // namespace ipoverbs::transport
