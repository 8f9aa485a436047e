#include <algorithm>
#include <cassert>

#include "csum/csum.h"

namespace ipoverbs::csum {

Partial sum(std::span<const Piece> pieces, Partial initial) noexcept {
  Partial total = initial;
  std::size_t offset = 0;
  for (const Piece piece : pieces) {
    total += csum::sum(piece).at_offset(offset);
    offset += piece.size();
  }
  return total;
}

Partial copy(std::span<const MutablePiece> to, std::span<const Piece> from,
             Partial initial) noexcept {
  Partial total = initial;
  std::size_t offset = 0;
  MutablePiece room;
  for (Piece rest : from) {
    while (!rest.empty()) {
      while (room.empty()) {
        assert(!to.empty());
        room = to.front();
        to = to.subspan(1);
      }
      const std::size_t n = std::min(room.size(), rest.size());
      total += csum::copy(room, rest.first(n)).at_offset(offset);
      offset += n;
      room = room.subspan(n);
      rest = rest.subspan(n);
    }
  }
  return total;
}

Partial copy(std::span<std::byte> to, std::span<const Piece> from, Partial initial) noexcept {
  return csum::copy(std::span<const MutablePiece>(&to, 1), from, initial);
}

Partial copy(std::span<const MutablePiece> to, std::span<const std::byte> from,
             Partial initial) noexcept {
  return csum::copy(to, std::span<const Piece>(&from, 1), initial);
}

}  // namespace ipoverbs::csum
