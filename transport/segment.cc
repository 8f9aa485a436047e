#include "transport/segment.h"

#include <netinet/in.h>

#include <algorithm>

#include "csum/packet.h"
#include "csum/partial.h"
#include "transport/ip_header.h"

namespace ipoverbs::transport {

namespace {

// TCP, RFC 9293, section 3.1; CWR: RFC 3168, section 6.1.
constexpr std::size_t kTcpSequence = 4;
constexpr std::size_t kTcpFlags = 13;
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kPsh = 0x08;
constexpr std::uint8_t kCwr = 0x80;
constexpr std::uint16_t kTcpChecksum = 16;
constexpr std::size_t kUdpLength = 4;
constexpr std::uint16_t kUdpChecksum = 6;

Be16 be16(std::size_t value) { return Be16(static_cast<std::uint16_t>(value)); }

}  // namespace

Segments::Segments(std::span<const std::byte> packet, const tun::VirtioNetHeader& header) noexcept
    : packet_(packet),
      transport_(header.csum_start.value()),
      payload_(tun::true_header_length(packet, header)),
      size_(header.gso_size.value()),
      tcp_((header.gso_type & ~tun::VIRTIO_NET_HDR_GSO_ECN) != tun::VIRTIO_NET_HDR_GSO_UDP_L4) {}

std::size_t Segments::count() const noexcept {
  return std::max<std::size_t>(1, (packet_.size() - payload_ + size_ - 1) / size_);
}

std::size_t Segments::longest() const noexcept {
  return std::min(packet_.size(), payload_ + size_);
}

std::size_t Segments::next(std::span<std::byte> out) noexcept {
  if (index_ >= count()) return 0;
  const std::size_t from = payload_ + (index_ * size_);
  const std::size_t bytes = std::min(size_, packet_.size() - from);
  const std::span<std::byte> segment = out.first(payload_ + bytes);
  std::ranges::copy(packet_.first(payload_), segment.begin());
  std::ranges::copy(packet_.subspan(from, bytes), segment.subspan(payload_).begin());
  write_ip_header(segment);
  const std::span<std::byte> transport = segment.subspan(transport_);
  if (tcp_) {
    write_tcp_header(transport, index_ + 1 == count());
  } else {
    store(transport, kUdpLength, be16(transport.size()));
  }
  write_checksums(segment);
  ++index_;
  return segment.size();
}

void Segments::write_ip_header(std::span<std::byte> segment) const noexcept {
  if (ip_version(segment) != 4) return store(segment, 4, be16(segment.size() - kIpv6Header));
  store(segment, 2, be16(segment.size()));
  store(segment, 4, be16(load<Be16>(packet_, 4).value() + index_));
  store(segment, 10, csum::ipv4_header_checksum(segment.first(ipv4_header_length(segment))));
}

void Segments::write_tcp_header(std::span<std::byte> tcp, bool last) const noexcept {
  const auto sequence = load<Be32>(packet_, transport_ + kTcpSequence).value();
  store(tcp, kTcpSequence, Be32(sequence + static_cast<std::uint32_t>(index_ * size_)));
  auto flags = load<std::uint8_t>(tcp, kTcpFlags);
  if (index_ > 0) flags &= static_cast<std::uint8_t>(~kCwr);
  if (!last) flags &= static_cast<std::uint8_t>(~(kFin | kPsh));
  store(tcp, kTcpFlags, flags);
}

// The field has the sum of the pseudo-header, with the super-packet's length in it. complete() sums
// that anew where the packet shows it; behind a routing header it does not, and the field counts.
void Segments::write_checksums(std::span<std::byte> segment) const noexcept {
  const std::uint16_t offset = tcp_ ? kTcpChecksum : kUdpChecksum;
  const Be16 field = load<Be16>(segment, transport_ + offset);
  const csum::Partial whole(be16(packet_.size() - transport_));
  const csum::Partial part(be16(segment.size() - transport_));
  store(segment, transport_ + offset, csum::update_partial(field, whole, part));
  // It fails for no packet that tun::check() calls a super-packet; if it did, the end host would
  // find the checksum wrong.
  (void)csum::complete(segment, {static_cast<std::uint16_t>(transport_), offset});
}

}  // namespace ipoverbs::transport
