// Copies of frames, on which a checksum that is due is completed: where a copy is made anyway, the
// sum rides on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "csum/packet.h"
#include "transport/frame.h"

namespace ipoverbs::transport {

enum class Summing : std::uint8_t {
  Fused,     // in the pass that copies
  Separate,  // in another after it: for comparison
};

// Copies `frame`, a whole one with a packet, to `to`, which has its size; with `checksum`,
// completes that of the packet on the copy. False if `checksum` does not fit the packet; then `to`
// holds nothing of use. Data path.
[[nodiscard]] inline bool copy_frame(std::span<std::byte> to, std::span<const std::byte> frame,
                                     const std::optional<csum::ChecksumPlace>& checksum,
                                     Summing summing) noexcept {
  if (!checksum) {
    std::ranges::copy(frame, to.begin());
    return true;
  }
  const std::span<std::byte> packet = to.subspan(kFrameHeader);
  if (summing == Summing::Separate) {
    std::ranges::copy(frame, to.begin());
    return csum::complete(packet, *checksum) == csum::Completion::done;
  }
  std::ranges::copy(frame.first(kFrameHeader), to.begin());
  return csum::copy_and_complete(packet, frame.subspan(kFrameHeader), *checksum) ==
         csum::Completion::done;
}

}  // namespace ipoverbs::transport
