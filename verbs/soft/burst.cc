#include "verbs/soft/burst.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace ipoverbs::verbs::soft {

void Burst::add(const Path& path, const Packet& packet, std::span<const ibv_sge> sges,
                std::uint64_t offset, std::uint32_t length) noexcept {
  assert(has_room());
  Segment& segment = segment_[segments_++];
  segment.path = &path;
  segment.header_size = static_cast<std::uint8_t>(emit_headers(segment.headers, packet, length));
  segment.payload = static_cast<std::uint16_t>(length);
  segment.first_piece = static_cast<std::uint16_t>(pieces_);
  for (const ibv_sge& sge : sges) {
    if (length == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const auto take =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length - offset, length));
    piece_[pieces_++] = {std::bit_cast<const std::byte*>(sge.addr + offset), take};
    length -= take;
    offset = 0;
  }
  assert(length == 0);
  segment.pieces = static_cast<std::uint16_t>(pieces_ - segment.first_piece);
}

std::size_t Burst::run_length(std::size_t first, std::size_t max_bytes) const noexcept {
  const Segment& head = segment_[first];
  const std::size_t size = head.size();
  const QpNumber qp = head.bth().qp();
  std::size_t count = 1;
  std::size_t bytes = size;
  while (first + count < segments_) {
    const Segment& next = segment_[first + count];
    bytes += next.size();
    if (next.path != head.path || next.bth().qp() != qp) break;
    if (next.size() > size || bytes > max_bytes) break;
    ++count;
    if (next.size() < size) break;
  }
  return count;
}

std::size_t Burst::write_trailer(const Segment& segment, std::uint16_t ip_id,
                                 std::span<std::byte, kIcrcSize + 3> out) const noexcept {
  const std::size_t pad = pad_of(segment.payload);
  Icrc icrc(segment.path->flow(), segment.size(), ip_id,
            std::span(segment.headers).first(segment.header_size));
  for (const auto piece : pieces(segment)) icrc.add(piece);
  std::ranges::fill(out.first(pad), std::byte{0});
  icrc.add(out.first(pad));
  store(out, pad, icrc.value());
  return pad + kIcrcSize;
}

void Burst::write(const Segment& segment, std::uint16_t ip_id,
                  std::span<std::byte> out) const noexcept {
  std::memcpy(out.data(), segment.headers.data(), segment.header_size);
  std::size_t at = segment.header_size;
  for (const auto piece : pieces(segment)) {
    std::memcpy(out.subspan(at, piece.size()).data(), piece.data(), piece.size());
    at += piece.size();
  }
  std::array<std::byte, kIcrcSize + 3> trailer;
  const std::size_t n = write_trailer(segment, ip_id, trailer);
  std::ranges::copy(std::span(trailer).first(n), out.subspan(at).begin());
}

}  // namespace ipoverbs::verbs::soft
