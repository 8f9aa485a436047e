// Arbitrary bytes as a record: what tun::check() calls a super-packet is cut as by the reference,
// within its buffer.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "csum/layout.h"
#include "tests/transport/segment_reference.h"
#include "transport/packet.h"
#include "transport/segment.h"

namespace ipoverbs::transport {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void try_record(std::span<const std::byte> record) {
  const auto header = load<tun::VirtioNetHeader>(record);
  support::Bytes packet(record.begin() + sizeof header, record.end());
  if (tun::check(header, packet) != tun::HeaderCheck::Ok) return;
  if (header.gso_type == tun::VIRTIO_NET_HDR_GSO_NONE) return;
  // The reference believes the field; where the pseudo-header can be seen, it is not believed.
  const csum::Layout layout = csum::locate(packet);
  if (layout.kind == csum::LayoutKind::covered) {
    store(std::span(packet), layout.start + layout.field, fold(layout.pseudo_header));
  }
  const auto expected = reference::segments(packet, header);
  Segments segments(packet, header);
  require(segments.count() == expected.size());
  // In memory of exactly its size, so that a byte too far is seen.
  const std::unique_ptr<std::byte[]> memory(new std::byte[segments.longest()]);
  const std::span out(memory.get(), segments.longest());
  for (const support::Bytes& segment : expected) {
    require(std::ranges::equal(out.first(segments.next(out)), segment));
    require(read_addresses(segment).has_value());
  }
  require(segments.next(out) == 0);
}

}  // namespace
}  // namespace ipoverbs::transport

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() > sizeof(ipoverbs::tun::VirtioNetHeader)) {
    ipoverbs::transport::try_record(bytes);
  }
  return 0;
}
