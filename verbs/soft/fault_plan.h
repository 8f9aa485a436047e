// A seeded plan of faults, and the wire that carries it out.
//
// FaultyWire stands before another wire and treats each datagram by the first rule that fits its
// direction and opcode: dropped, damaged by one flipped bit, marked as by a congested queue, sent
// twice, held back behind some that follow, delayed; several at once, but for what is dropped. A
// bit is flipped anywhere that the ICRC covers. The same seed and the same traffic give the same
// faults. Datagrams leave one by one (no UDP_SEGMENT), so that a fault in one doesn't change the
// next one's identification.
//
// As text (parse_fault_plan()), words separated by spaces:
//
//   seed=7 out:drop=0.01 in:drop=0.01,duplicate=0.005 out/answer:delay=0.1@5ms
//
//   DIRECTION[/OPCODES]:FAULT=PROBABILITY[@TIME][,...]
//   DIRECTION  out, in
//   OPCODES    any (the default), send, answer (ACK and NAK), cm, or a number (0x04)
//   FAULT      drop, corrupt, mark, duplicate, reorder, delay (which needs a time in us or ms)
//
// A mark is ECN's: what is not sent as capable of it (RFC 3168) is left alone.
//
// Two words say what the kernel is to be taken not to have, so that it can be measured; without
// rules beside them no FaultyWire stands in the way:
//
//   no-gso     UDP_SEGMENT: every datagram is a send of its own
//   no-gro     UDP_GRO: every datagram is received by itself
//
// This is for tests and demonstrations; it allocates as it likes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/gauge.h"
#include "verbs/soft/wire.h"

namespace ipoverbs::verbs::soft {

enum class Direction : std::uint8_t { Out, In };

// Probabilities from 0 to 1, each drawn on its own.
struct FaultRule {
  Direction direction = Direction::Out;
  std::bitset<256> opcodes = std::bitset<256>().set();
  double drop = 0;
  double corrupt = 0;
  double mark = 0;
  double duplicate = 0;
  double reorder = 0;  // behind one to three of those that follow, or kReorderLimit
  double delay = 0;
  Duration delay_by{};
};

struct FaultPlan {
  std::uint64_t seed = 1;
  std::vector<FaultRule> rules;
  bool segmentation = true;  // UDP_SEGMENT
  bool coalescing = true;    // UDP_GRO
};

// Throws UsageError that quotes the word at fault.
[[nodiscard]] FaultPlan parse_fault_plan(std::string_view text);

// Written by the wire's user, read by any thread.
struct FaultCounters {
  Gauge passed;  // looked at
  Gauge dropped;
  Gauge corrupted;
  Gauge marked;
  Gauge duplicated;
  Gauge reordered;
  Gauge delayed;
};

class FaultyWire : public Wire {
 public:
  // `inner` outlives this wire. `salt` makes wires with one plan differ.
  FaultyWire(Wire& inner, const FaultPlan& plan, std::uint64_t salt = 0);

  void send(const Burst& burst, TimePoint now) noexcept override;
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint now) noexcept override;
  [[nodiscard]] std::span<const Received> receive(TimePoint now) noexcept override;
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept override;

  // Any thread.
  [[nodiscard]] const FaultCounters& counters(Direction direction) const {
    return lane(direction).counters;
  }
  static constexpr Duration kReorderLimit = std::chrono::milliseconds(1);

 private:
  // Where a datagram goes or comes from, and its bytes.
  struct Datagram {
    std::vector<std::byte> bytes;
    Path path;        // out; its traffic class doesn't count
    Endpoint source;  // in
    std::uint8_t traffic_class = 0;
  };
  struct Held {
    Datagram datagram;
    TimePoint until;
    unsigned behind = 0;  // datagrams that have to pass first; 0: only time counts
  };
  struct Lane {
    std::mt19937_64 random;
    std::deque<Held> held;
    std::vector<Datagram> ready;  // in order
    FaultCounters counters;
  };

  [[nodiscard]] const Lane& lane(Direction direction) const {
    return lanes_[static_cast<std::size_t>(direction)];
  }
  void pass(Direction direction, Datagram datagram, TimePoint now);
  [[nodiscard]] const FaultRule* rule_for(Direction direction, std::uint8_t opcode) const;
  static void apply(const FaultRule& rule, Lane& lane, Datagram datagram, TimePoint now);
  static void release(Lane& lane, TimePoint now, bool one_passed);
  void send_ready(TimePoint now);

  Wire& inner_;
  FaultPlan plan_;
  std::array<Lane, 2> lanes_;
  std::vector<Datagram> delivered_;  // what received_ lies in
  std::vector<Received> received_;
};

}  // namespace ipoverbs::verbs::soft
