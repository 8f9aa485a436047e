// Queue pair numbers that say where their queue pair lives.
//
//   23            6 5      0
//   | serial        | slot  |
//
// The slot is the place of the receiving socket in the port's group, so that datagrams can be
// steered by the number alone. Slot 0 is the connection manager's, which QP1's datagrams go to.
// Serial numbers go up from a random start and come around after 2^18: no number comes again soon,
// so that nobody takes an old connection for a new one.
#pragma once

#include <cstdint>

#include "verbs/device.h"

namespace ipoverbs::verbs::soft {

inline constexpr unsigned kSlotBits = 6;
inline constexpr unsigned kSlots = 1U << kSlotBits;
inline constexpr unsigned kControlSlot = 0;

[[nodiscard]] constexpr unsigned slot_of(QpNumber number) {
  return number.value() == 1 ? kControlSlot : number.value() & (kSlots - 1);
}

class QpNumbers {
 public:
  explicit QpNumbers(std::uint32_t start) : serial_(start) {}

  // Slots count from 1 for queue pairs. Numbers below kSlots are never given: some are special.
  [[nodiscard]] QpNumber next(unsigned slot) {
    constexpr std::uint32_t kSerials = 1U << (24 - kSlotBits);
    serial_ = serial_ % (kSerials - 1) + 1;
    return QpNumber(serial_ << kSlotBits | slot);
  }

 private:
  std::uint32_t serial_;
};

}  // namespace ipoverbs::verbs::soft
