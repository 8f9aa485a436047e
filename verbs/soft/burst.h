// Burst: packets on their way out, in order: headers by value, payload by reference.
//
// The state machines fill a burst, whoever owns the wire empties it: the UDP port into one system
// call with a list of pieces, copying nothing, a simulated wire into bytes. The payload is the
// poster's memory and the path the queue pair's: a burst is emptied before either can go away.
//
// Consecutive segments with one path and destination queue pair, equal in size but for a shorter
// last one, can leave as one UDP_SEGMENT send (run_length()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "verbs/soft/path.h"
#include "verbs/soft/roce.h"
#include "verbs/soft/work_queue.h"

namespace ipoverbs::verbs::soft {

// One packet.
struct Segment {
  const Path* path = nullptr;
  std::array<std::byte, kMaxHeaders> headers{};  // BTH and extension headers
  std::uint8_t header_size = 0;
  std::uint16_t payload = 0;      // bytes, without pad
  std::uint16_t first_piece = 0;  // of the payload, in the burst's list
  std::uint16_t pieces = 0;

  [[nodiscard]] std::size_t size() const {  // of the datagram
    return header_size + payload + pad_of(payload) + kIcrcSize;
  }
  [[nodiscard]] Bth bth() const { return load<Bth>(headers); }
};

class Burst {
 public:
  static constexpr std::size_t kSegments = 64;
  static constexpr std::size_t kPieces = 4 * kSegments;
  // Whether one more packet with as many pieces as can be still fits.
  [[nodiscard]] bool has_room() const {
    return segments_ < kSegments && pieces_ + kMaxSendSge <= kPieces;
  }
  [[nodiscard]] bool empty() const { return segments_ == 0; }
  [[nodiscard]] std::span<const Segment> segments() const {
    return std::span(segment_).first(segments_);
  }
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces(const Segment& s) const {
    return std::span(piece_).subspan(s.first_piece, s.pieces);
  }
  void clear() { segments_ = pieces_ = 0; }

  // Appends one packet, its payload cut out of `sges` at `offset`, `length` bytes at most
  // kMaxPathMtu and all within them. has_room() is true.
  void add(const Path& path, const Packet& packet, std::span<const ibv_sge> sges,
           std::uint64_t offset, std::uint32_t length) noexcept;

  // How many segments from `first` on can leave as one send of at most `max_bytes`; at least 1.
  [[nodiscard]] std::size_t run_length(std::size_t first, std::size_t max_bytes) const noexcept;

  // The datagram of `segment`, whole, written to `out` (Segment::size() bytes).
  void write(const Segment& segment, std::uint16_t ip_id, std::span<std::byte> out) const noexcept;
  // Its pad and ICRC alone, 4 to 7 bytes; returns how many.
  std::size_t write_trailer(const Segment& segment, std::uint16_t ip_id,
                            std::span<std::byte, kIcrcSize + 3> out) const noexcept;

 private:
  std::array<Segment, kSegments> segment_;
  std::array<std::span<const std::byte>, kPieces> piece_;
  std::size_t segments_ = 0;
  std::size_t pieces_ = 0;
};

}  // namespace ipoverbs::verbs::soft
