// The virtio header in front of every packet that a TUN reads or writes, and what may be in it.
//
// Theory of operation. With IFF_VNET_HDR the kernel puts this header (Virtual I/O Device (VIRTIO)
// 1.2, section 5.1.6, struct virtio_net_hdr without num_buffers) in front of a packet: it says
// which part of the checksum and of the segmentation has been left undone. ipoverbs carries it over
// the wire as it is, so that on the receiving side every field is in a stranger's hand. Before such
// a header is given to the kernel, check() compares each field with the packet, and hdr_len, which
// is a hint that even the kernel fills in loosely, is set anew from true_header_length().
//
// check() is stricter than the kernel's virtio_net_hdr_to_skb() (include/linux/virtio_net.h): what
// it calls Ok the kernel takes (a root test tries that on a real TUN), and what the kernel would
// take and drop later in silence, or misread, has a name here. It does not look at checksums: a
// wrong one is the end host's to find.
//
// Everything here is noexcept, allocates nothing and reads at most the headers of the packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/byte_order.h"

namespace ipoverbs::tun {

// Values of VirtioNetHeader::flags.
inline constexpr std::uint8_t VIRTIO_NET_HDR_F_NEEDS_CSUM = 1;
inline constexpr std::uint8_t VIRTIO_NET_HDR_F_DATA_VALID = 2;

// Values of VirtioNetHeader::gso_type; ECN is a bit beside one of the TCP types.
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_NONE = 0;
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_TCPV4 = 1;
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_UDP = 3;  // fragmentation (UFO): not supported
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_TCPV6 = 4;
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_UDP_L4 = 5;
inline constexpr std::uint8_t VIRTIO_NET_HDR_GSO_ECN = 0x80;

//      0      1      2      3      4      5      6      7      8      9     byte
//   +------+------+-------------+-------------+-------------+-------------+
//   |flags |gso_  |   hdr_len   |  gso_size   | csum_start  | csum_offset |  16-bit fields
//   |      |type  |             |             |             |             |  little-endian
//   +------+------+-------------+-------------+-------------+-------------+
struct VirtioNetHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = VIRTIO_NET_HDR_GSO_NONE;
  Le16 hdr_len;      // bytes of IP and transport headers
  Le16 gso_size;     // payload bytes of each segment but the last
  Le16 csum_start;   // where summing starts, bytes into the packet
  Le16 csum_offset;  // where the sum goes, bytes after csum_start

  friend bool operator==(const VirtioNetHeader&, const VirtioNetHeader&) = default;
};
static_assert(sizeof(VirtioNetHeader) == 10 && alignof(VirtioNetHeader) == 1);

// The longest IP packet, and the most bytes of one read or write of a TUN.
inline constexpr std::size_t kMaxPacket = 65535;
inline constexpr std::size_t kMaxRecord = sizeof(VirtioNetHeader) + kMaxPacket;

// UDP_MAX_SEGMENTS (include/linux/udp.h) since 6.9; kernels before it end at 64, so that what this
// host makes itself should stay at 64.
inline constexpr std::size_t kMaxUdpSegments = 128;

enum class HeaderCheck : std::uint8_t {
  Ok,
  PacketEmpty,          // a header with no packet behind it
  PacketTooLong,        // more than kMaxPacket
  BadIpVersion,         // neither 4 nor 6
  BadIpHeader,          // shorter than its version or its IHL says
  UnknownFlags,         // other than NEEDS_CSUM and DATA_VALID
  UnknownGsoType,       // UFO included
  ChecksumOutside,      // the 16 bits at csum_start + csum_offset are not within the packet
  ChecksumInIpHeader,   // csum_start lies within the IP header
  GsoWithoutChecksum,   // a super-packet has no complete checksum
  GsoWrongFamily,       // TCPV4 on IPv6 or the reverse
  GsoWrongTransport,    // not the protocol that the type names, or a fragment
  GsoWrongChecksum,     // csum_start, csum_offset are not those of the transport header
  GsoTruncatedHeader,   // the transport header is not all there
  GsoLengthMismatch,    // the IP or UDP length is not the packet's
  GsoBadSize,           // gso_size 0, or 65535 (GSO_BY_FRAGS)
  GsoTooManySegments,   // more than kMaxUdpSegments datagrams
  GsoUnexpectedEcnBit,  // VIRTIO_NET_HDR_GSO_ECN without a TCP type
};
inline constexpr std::size_t kHeaderChecks = 18;

// The enumerator's name in words, for counters and logs: "checksum outside the packet".
[[nodiscard]] std::string_view describe(HeaderCheck check) noexcept;

// Whether `header` makes sense on `packet` (an IP packet without the header in front). hdr_len is
// not looked at: it is never trusted and set anew. gso_size is only asked to be usable: whether
// segments fit an MTU is the caller's question.
[[nodiscard]] HeaderCheck check(const VirtioNetHeader& header,
                                std::span<const std::byte> packet) noexcept;

// Where the transport header of a packet is.
struct TransportHeader {
  std::size_t offset = 0;     // bytes from the start of the packet; at most its size
  std::uint8_t protocol = 0;  // IANA number of the header at `offset`
  // Whether a whole transport header may be expected at `offset`: false for a fragment, for an
  // encrypted or unknown extension header, and when the packet ends before.
  bool present = false;
};

// Walks the IPv4 header, or the IPv6 header and its extension headers (RFC 8200, section 4; at most
// 16 of them), as far as they can be read. For a packet whose IP header cannot be read, offset is
// the packet's size.
[[nodiscard]] TransportHeader find_transport(std::span<const std::byte> packet) noexcept;

// hdr_len as it ought to be: the bytes of IP header, extension headers and TCP or UDP header, and
// at least up to the end of the checksum that `header` asks for. Never more than the packet, and
// for a packet that is not empty never zero, for which Linux 6.1 would make all of a 64K packet one
// allocation (drivers/net/tun.c, tun_alloc_skb()).
[[nodiscard]] std::uint16_t true_header_length(std::span<const std::byte> packet,
                                               const VirtioNetHeader& header) noexcept;

}  // namespace ipoverbs::tun
