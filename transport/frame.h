// Frames: how packets lie in a message.
//
// A message (one verbs SEND) is one or more frames, end to end:
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +-------------------------------+-------------------------------+
//   |            length             |            credits            |
//   +---------------+---------------+-------------------------------+
//   |     type      |     flags     |                               |
//   +---------------+---------------+                               |
//   |            virtio_net_hdr, 10 bytes, little-endian            |
//   +---------------------------------------------------------------+
//   |                 IP packet, `length` bytes ...                 |
//   +---------------------------------------------------------------+
//   |        zero to seven bytes, up to a multiple of eight         |
//   +---------------------------------------------------------------+
//
// length and credits are big-endian. The virtio header is the one that the TUN gave (virtio 1.0,
// section 5.1.6; `struct virtio_net_hdr` in linux/virtio_net.h), so that a super-packet or a
// partial checksum crosses untouched; it stands right before its packet, where read(2) put it and
// where write(2) wants it. `credits` are messages that the sender of the frame grants, in addition
// to all granted before; a grant may stand in any frame. The frame header is 16 bytes, so that a
// packet begins on a multiple of eight.
//
// A message with a packet in it costs its sender one credit. A message of Control frames alone
// (length 0) costs none: grants must be sent when there is no credit. What it grants may be 0: then
// it says only that its sender is alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/byte_order.h"
#include "tun/virtio_net.h"

namespace ipoverbs::transport {

enum class FrameType : std::uint8_t { Packet = 0, Control = 1 };

struct FrameHeader {
  Be16 length;   // bytes of IP packet
  Be16 credits;  // messages granted
  std::uint8_t type = 0;
  std::uint8_t flags = 0;  // below; the others zero when sent, ignored when received
  tun::VirtioNetHeader offload;
};
static_assert(sizeof(FrameHeader) == 16 && alignof(FrameHeader) == 1);

// Flag of a packet whose virtio header asks for a checksum (NEEDS_CSUM): the sender has completed
// it, as of the packet as it stands, a super-packet included. The receiver verifies it and makes it
// partial again.
inline constexpr std::uint8_t kChecksumComplete = 1;

// Flag of a Control frame: bytes 8 to 11, big-endian, are the capabilities (Hello) that its sender
// has left.
inline constexpr std::uint8_t kCapabilities = 2;
inline constexpr std::size_t kCapabilitiesOffset = 8;

// csum_offset of the virtio header in a frame that asks for no checksum, where no receiver reads
// it. Wireshark takes a SEND for RPC over RDMA if the 32 bits at its byte 12 are an RDMA procedure,
// 0 to 4, and then calls it malformed (packet_is_rpcordma() in its packet-rpcrdma.c).
inline constexpr std::uint16_t kNoChecksumOffset = 0xffff;

inline constexpr std::size_t kFrameHeader = sizeof(FrameHeader);
inline constexpr std::size_t kFrameAlignment = 8;
// Where in a frame the virtio header begins: a TUN is read into, and written from, this place.
inline constexpr std::size_t kTunOffset = kFrameHeader - sizeof(tun::VirtioNetHeader);
inline constexpr std::size_t kMaxPacket = 65535;  // of IP, by its length fields

// Bytes that a frame with a packet of `length` bytes occupies, padding included.
[[nodiscard]] constexpr std::size_t frame_size(std::size_t length) {
  return (kFrameHeader + length + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}
inline constexpr std::size_t kMaxFrame = frame_size(kMaxPacket);
// The largest message: one frame of the largest size, or many that fill no more.
inline constexpr std::size_t kMaxMessage = kMaxFrame;

// One frame inside a received message.
struct Frame {
  FrameType type = FrameType::Packet;
  std::uint8_t flags = 0;
  std::uint16_t credits = 0;
  std::span<std::byte> tun_bytes;  // virtio header and packet
  [[nodiscard]] std::span<std::byte> packet() const {
    return tun_bytes.subspan(sizeof(tun::VirtioNetHeader));
  }
  // Of a Control frame with kCapabilities.
  [[nodiscard]] std::uint32_t capabilities() const {
    return load<Be32>(tun_bytes, kCapabilitiesOffset - kTunOffset).value();
  }
};

// Walks a received message. Bounds are checked before anything is handed out.
class FrameReader {
 public:
  enum class Result : std::uint8_t {
    Frame,      // one more
    End,        // the message ended with the last one
    Malformed,  // what is left is no frame: unknown type, or longer than the message
  };
  explicit FrameReader(std::span<std::byte> message) noexcept : rest_(message) {}
  // Sets `frame` if it returns Result::Frame. Data path.
  [[nodiscard]] Result next(Frame& frame) noexcept;

 private:
  std::span<std::byte> rest_;
};

// Writes the first bytes of a frame whose packet and virtio header are in place, zeros its padding
// and sets kNoChecksumOffset where it belongs. `frame` begins at the header and has at least
// frame_size(length) bytes; length <= kMaxPacket.
void finish_packet_frame(std::span<std::byte> frame, std::size_t length) noexcept;

// Writes a whole Control frame; kFrameHeader bytes.
void write_control_frame(std::span<std::byte> frame, std::uint16_t credits) noexcept;

// Writes a whole Control frame that grants nothing and tells what capabilities are left;
// kFrameHeader bytes.
void write_capabilities_frame(std::span<std::byte> frame, std::uint32_t capabilities) noexcept;

// Sets the flags of the frame that begins at `frame`.
void set_flags(std::span<std::byte> frame, std::uint8_t flags) noexcept;

// Sets the credits of the frame that begins at `frame`.
void set_credits(std::span<std::byte> frame, std::uint16_t credits) noexcept;

// Bytes of the frame that begins at `frame`, padding included, by its own header: for frames that
// we wrote, not for received ones.
[[nodiscard]] std::size_t written_frame_size(std::span<const std::byte> frame) noexcept;

}  // namespace ipoverbs::transport
