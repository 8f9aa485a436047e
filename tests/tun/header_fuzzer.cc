// Arbitrary bytes as a record: check() and true_header_length() keep what they promise.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tun/virtio_net.h"

namespace ipoverbs::tun {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void try_record(std::span<const std::byte> record) {
  const auto header = load<VirtioNetHeader>(record);
  const auto packet = record.subspan(sizeof header);
  const TransportHeader at = find_transport(packet);
  require(at.offset <= packet.size());
  const std::size_t length = true_header_length(packet, header);
  require(length <= packet.size());
  require(packet.empty() || length > 0);
  require(length >= std::min(at.offset, kMaxPacket));
  if (check(header, packet) != HeaderCheck::Ok) return;
  require(!packet.empty() && packet.size() <= kMaxPacket);
  const std::size_t sum = std::size_t{header.csum_start.value()} + header.csum_offset.value();
  if ((header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) {
    require(sum + 2 <= packet.size() && sum + 2 <= length);
  }
  if (header.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
    require(at.present && header.gso_size.value() != 0);
    require(header.csum_start.value() == at.offset && length > at.offset);
  }
}

}  // namespace
}  // namespace ipoverbs::tun

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() >= sizeof(ipoverbs::tun::VirtioNetHeader)) ipoverbs::tun::try_record(bytes);
  return 0;
}
