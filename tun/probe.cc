#include "tun/probe.h"

#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "core/byte_order.h"
#include "core/error.h"
#include "tun/driver.h"
#include "tun/virtio_net.h"

namespace ipoverbs::tun {

namespace {

// 192.0.2.1 to 233.252.0.1, 2001:db8::1 to ff02::db8:0:1.
constexpr std::uint32_t kSource4 = 0xc0000201;
constexpr std::uint32_t kGroup4 = 0xe9fc0001;
constexpr std::array<std::uint16_t, 8> kSource6{0x2001, 0x0db8, 0, 0, 0, 0, 0, 1};
constexpr std::array<std::uint16_t, 8> kGroup6{0xff02, 0, 0, 0, 0, 0x0db8, 0, 1};
constexpr std::uint16_t kDiscard = 9;  // the port of RFC 863
constexpr std::uint16_t kSegment = 1000;
constexpr std::size_t kPayload = (2 * kSegment) + 500;  // the last segment is the shorter one

struct Shape {
  std::uint8_t gso_type = VIRTIO_NET_HDR_GSO_NONE;
  bool v6 = false;
  std::uint8_t protocol = IPPROTO_TCP;
};

// The Internet checksum's sum of `bytes`, an even number of them, before the complement.
std::uint16_t sum16(std::span<const std::byte> bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) sum += load<Be16>(bytes, i).value();
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return static_cast<std::uint16_t>(sum);
}

// Lays an IP header at the start of `packet`, which has its final size; returns its length.
std::size_t put_ip_header(std::span<std::byte> packet, const Shape& shape) {
  if (shape.v6) {
    store(packet, 0, Be32(0x60000000));
    store(packet, 4, Be16(static_cast<std::uint16_t>(packet.size() - 40)));
    packet[6] = std::byte{shape.protocol};
    packet[7] = std::byte{1};
    for (std::size_t i = 0; i < 8; ++i) {
      store(packet, 8 + (2 * i), Be16(kSource6[i]));
      store(packet, 24 + (2 * i), Be16(kGroup6[i]));
    }
    return 40;
  }
  store(packet, 0, Be16(0x4500));
  store(packet, 2, Be16(static_cast<std::uint16_t>(packet.size())));
  store(packet, 6, Be16(0x4000));  // do not fragment
  packet[8] = std::byte{1};
  packet[9] = std::byte{shape.protocol};
  store(packet, 12, Be32(kSource4));
  store(packet, 16, Be32(kGroup4));
  store(packet, 10, Be16(static_cast<std::uint16_t>(~sum16(packet.first(20), 0))));
  return 20;
}

// A virtio header and a packet as a writer with partial checksums lays them out.
std::vector<std::byte> make_record(const Shape& shape) {
  const bool tcp = shape.protocol == IPPROTO_TCP;
  const std::size_t ip_length = shape.v6 ? 40 : 20;
  const std::size_t headers = ip_length + (tcp ? 20 : 8);
  std::vector<std::byte> record(sizeof(VirtioNetHeader) + headers + kPayload);
  const std::span packet = std::span(record).subspan(sizeof(VirtioNetHeader));
  put_ip_header(packet, shape);
  const std::span transport = packet.subspan(ip_length);
  const auto length = static_cast<std::uint16_t>(transport.size());
  store(transport, 0, Be16(kDiscard));
  store(transport, 2, Be16(kDiscard));
  if (tcp) {
    const bool ecn = (shape.gso_type & VIRTIO_NET_HDR_GSO_ECN) != 0;
    store(transport, 12, Be16(ecn ? 0x5090 : 0x5010));  // ACK, and CWR
  } else {
    store(transport, 4, Be16(length));
  }
  const std::size_t checksum_offset = tcp ? 16 : 6;
  const std::span addresses = shape.v6 ? packet.subspan(8, 32) : packet.subspan(12, 8);
  store(transport, checksum_offset, Be16(sum16(addresses, std::uint32_t{length} + shape.protocol)));
  store(
      std::span(record), 0,
      VirtioNetHeader{
          .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
          .gso_type = shape.gso_type,
          .hdr_len = Le16(static_cast<std::uint16_t>(headers)),
          .gso_size = Le16(shape.gso_type == VIRTIO_NET_HDR_GSO_NONE ? std::uint16_t{0} : kSegment),
          .csum_start = Le16(static_cast<std::uint16_t>(ip_length)),
          .csum_offset = Le16(static_cast<std::uint16_t>(checksum_offset)),
      });
  return record;
}

bool takes(int queue, const Shape& shape) {
  const std::vector<std::byte> record = make_record(shape);
  if (::write(queue, record.data(), record.size()) >= 0) return true;
  switch (const int error = errno) {
    case EIO:  // the header was taken, and then the interface found to be down
      return true;
    case EINVAL:
      return false;
    default:
      throw SystemError(error, fmt::format("write a test packet of GSO type {} to the TUN",
                                           static_cast<unsigned>(shape.gso_type)));
  }
}

Offloads probe_write(int queue) {
  constexpr Shape kUdp4{.protocol = IPPROTO_UDP};
  constexpr Shape kTso4{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4};
  constexpr Shape kTso4Ecn{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN};
  constexpr Shape kTso6{.gso_type = VIRTIO_NET_HDR_GSO_TCPV6, .v6 = true};
  constexpr Shape kTso6Ecn{.gso_type = VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN,
                           .v6 = true};
  constexpr Shape kUso4{.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4, .protocol = IPPROTO_UDP};
  constexpr Shape kUso6{.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4, .v6 = true, .protocol = IPPROTO_UDP};
  Offloads found;
  found.checksum = takes(queue, kUdp4);
  found.tso4 = takes(queue, kTso4);
  found.tso6 = takes(queue, kTso6);
  found.tso_ecn =
      (!found.tso4 || takes(queue, kTso4Ecn)) && (!found.tso6 || takes(queue, kTso6Ecn));
  found.uso = takes(queue, kUso4) && takes(queue, kUso6);
  return intersect(found, found);
}

Offloads probe_read(int queue) {
  constexpr std::array<Offloads, 5> kFromLargest{{
      {.checksum = true, .tso4 = true, .tso6 = true, .tso_ecn = true, .uso = true},
      {.checksum = true, .tso4 = true, .tso6 = true, .tso_ecn = true},
      {.checksum = true, .tso4 = true, .tso6 = true},
      {.checksum = true, .tso4 = true},
      {.checksum = true},
  }};
  Offloads found;
  for (const Offloads& set : kFromLargest) {
    if (set_offloads(queue, set) != 0) continue;
    found = set;
    break;
  }
  if (const int error = set_offloads(queue, {}); error != 0) {
    throw SystemError(error, "take the offloads back (TUNSETOFFLOAD)");
  }
  return found;
}

}  // namespace

ProbedOffloads probe_offloads(int queue) {
  return {.read = probe_read(queue), .write = probe_write(queue)};
}

}  // namespace ipoverbs::tun
