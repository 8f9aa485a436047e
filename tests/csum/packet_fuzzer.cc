// Any bytes as a packet: the functions of csum/packet.h agree with the plain reference, agree with
// each other, and touch nothing outside (AddressSanitizer).
//
// Input: csum_start and csum_offset as little-endian 16-bit numbers, then the packet.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/byte_order.h"
#include "csum/csum.h"
#include "csum/packet.h"
#include "tests/csum/packet_reference.h"

namespace {

using namespace ipoverbs;
using csum::Bytes;

void require(bool holds) {
  if (!holds) std::abort();
}

// In memory of exactly its size, so that a byte too far is seen.
class Exact {
 public:
  explicit Exact(const Bytes& bytes) : size_(bytes.size()), bytes_(new std::byte[bytes.size()]) {
    std::ranges::copy(bytes, bytes_.get());
  }
  [[nodiscard]] std::span<std::byte> span() const { return {bytes_.get(), size_}; }
  [[nodiscard]] bool equals(const Bytes& bytes) const { return std::ranges::equal(span(), bytes); }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

void check_complete(const Bytes& packet, csum::ChecksumPlace place) {
  Bytes expected = packet;
  const csum::Completion right = csum::reference::complete(expected, place);
  const Exact in_place(packet);
  require(csum::complete(in_place.span(), place) == right);
  require(in_place.equals(expected));

  const Exact source(packet);
  const Bytes untouched(packet.size(), std::byte{0x5a});
  const Exact copy(untouched);
  require(csum::copy_and_complete(copy.span(), source.span(), place) == right);
  require(copy.equals(right == csum::Completion::done ? expected : untouched));
  require(source.equals(packet));
}

void check_verify(const Bytes& packet) {
  const csum::Verdict right = csum::reference::verify(packet);
  const Exact exact(packet);
  const csum::Layout layout = csum::locate(exact.span());
  require(csum::verify(exact.span()) == right);
  require(csum::verify(exact.span(), layout) == right);
  csum::Partial covered;
  if (layout.kind == csum::LayoutKind::covered) {
    covered = csum::sum(layout.covered_part(std::span<const std::byte>(exact.span())));
  }
  require(csum::verify(exact.span(), layout, covered) == right);
  require(exact.equals(packet));
}

// A packet made partial and completed again is what it was, but for the zero that a checksum had.
void check_partial(const Bytes& packet) {
  const Exact exact(packet);
  const csum::Layout layout = csum::locate(exact.span());
  const auto place = csum::make_partial(exact.span(), layout);
  if (!place) {
    require(exact.equals(packet));
    return;
  }
  require(csum::complete(exact.span(), *place) == csum::Completion::done);
  const csum::Verdict verdict = csum::verify(exact.span());
  require(verdict == csum::Verdict::valid || verdict == csum::Verdict::wrong_ip_header);
  if (csum::verify(packet) != csum::Verdict::valid) return;
  Bytes expected = packet;
  const std::size_t field = std::size_t{place->start} + place->offset;
  if (load<Be16>(expected, field) == Be16{}) store(std::span(expected), field, Be16(0xffff));
  require(exact.equals(expected));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  const csum::ChecksumPlace place{load<Le16>(input, 0).value(), load<Le16>(input, 2).value()};
  const Bytes packet(input.begin() + 4, input.end());
  check_complete(packet, place);
  check_verify(packet);
  check_partial(packet);
  return 0;
}
