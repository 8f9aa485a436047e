#include "transport/frame.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace ipoverbs::transport {

FrameReader::Result FrameReader::next(Frame& frame) noexcept {
  if (rest_.empty()) return Result::End;
  if (rest_.size() < kFrameHeader) return Result::Malformed;
  const auto header = load<FrameHeader>(rest_);
  const std::size_t length = header.length.value();
  if (kFrameHeader + length > rest_.size()) return Result::Malformed;
  if (header.type > std::to_underlying(FrameType::Control)) return Result::Malformed;
  frame.type = static_cast<FrameType>(header.type);
  if ((frame.type == FrameType::Control) != (length == 0)) return Result::Malformed;
  frame.flags = header.flags;
  frame.credits = header.credits.value();
  frame.tun_bytes = rest_.subspan(kTunOffset, sizeof(tun::VirtioNetHeader) + length);
  // The last frame may come without its padding.
  rest_ = rest_.subspan(std::min(frame_size(length), rest_.size()));
  return Result::Frame;
}

void finish_packet_frame(std::span<std::byte> frame, std::size_t length) noexcept {
  assert(length <= kMaxPacket && frame.size() >= frame_size(length));
  store(frame, offsetof(FrameHeader, length), Be16(static_cast<std::uint16_t>(length)));
  store(frame, offsetof(FrameHeader, credits), Be16(0));
  store(frame, offsetof(FrameHeader, type), std::to_underlying(FrameType::Packet));
  store(frame, offsetof(FrameHeader, flags), std::uint8_t{0});
  const auto offload = load<tun::VirtioNetHeader>(frame.subspan(kTunOffset));
  if ((offload.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0) {
    store(frame, kTunOffset + offsetof(tun::VirtioNetHeader, csum_offset), Le16(kNoChecksumOffset));
  }
  const std::size_t used = kFrameHeader + length;
  std::ranges::fill(frame.subspan(used, frame_size(length) - used), std::byte{0});
}

void write_control_frame(std::span<std::byte> frame, std::uint16_t credits) noexcept {
  FrameHeader header;
  header.credits = Be16(credits);
  header.type = std::to_underlying(FrameType::Control);
  header.offload.csum_offset = Le16(kNoChecksumOffset);
  store(frame, 0, header);
}

void write_capabilities_frame(std::span<std::byte> frame, std::uint32_t capabilities) noexcept {
  write_control_frame(frame, 0);
  set_flags(frame, kCapabilities);
  store(frame, kCapabilitiesOffset, Be32(capabilities));
}

void set_flags(std::span<std::byte> frame, std::uint8_t flags) noexcept {
  store(frame, offsetof(FrameHeader, flags), flags);
}

void set_credits(std::span<std::byte> frame, std::uint16_t credits) noexcept {
  store(frame, offsetof(FrameHeader, credits), Be16(credits));
}

std::size_t written_frame_size(std::span<const std::byte> frame) noexcept {
  return frame_size(load<FrameHeader>(frame).length.value());
}

}  // namespace ipoverbs::transport
