#include <algorithm>
#include <utility>

#include "verbs/soft/ecn.h"
#include "verbs/soft/fault_plan.h"

namespace ipoverbs::verbs::soft {

namespace {

// The standard distributions may differ between libraries: 53 random bits do not.
bool happens(std::mt19937_64& random, double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random() >> 11U) * 0x1p-53 < probability;
}

// Anywhere but in the BTH's fifth byte, which the ICRC doesn't cover.
void flip_one_bit(std::span<std::byte> datagram, std::mt19937_64& random) {
  constexpr std::size_t kUncovered = 4;
  std::size_t at = random() % (datagram.size() - 1);
  if (at >= kUncovered) ++at;
  datagram[at] ^= static_cast<std::byte>(1U << random() % 8);
}

}  // namespace

FaultyWire::FaultyWire(Wire& inner, const FaultPlan& plan, std::uint64_t salt)
    : inner_(inner), plan_(plan) {
  // Two streams, so that one direction's traffic doesn't move the other's faults.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    std::seed_seq seed{plan.seed, plan.seed >> 32U, salt, std::uint64_t{i}};
    lanes_.at(i).random.seed(seed);
  }
}

const FaultRule* FaultyWire::rule_for(Direction direction, std::uint8_t opcode) const {
  const auto found = std::ranges::find_if(plan_.rules, [&](const FaultRule& rule) {
    return rule.direction == direction && rule.opcodes.test(opcode);
  });
  return found == plan_.rules.end() ? nullptr : &*found;
}

void FaultyWire::pass(Direction direction, Datagram datagram, TimePoint now) {
  Lane& lane = lanes_.at(static_cast<std::size_t>(direction));
  lane.counters.passed.add();
  const FaultRule* const rule =
      datagram.bytes.size() < sizeof(Bth) + kIcrcSize
          ? nullptr
          : rule_for(direction, std::to_integer<std::uint8_t>(datagram.bytes[0]));
  if (rule == nullptr) {
    lane.ready.push_back(std::move(datagram));
  } else {
    apply(*rule, lane, std::move(datagram), now);
  }
}

// Each fault is drawn for each datagram, whatever became of it, so that one probability doesn't
// move another fault's draws.
void FaultyWire::apply(const FaultRule& rule, Lane& lane, Datagram datagram, TimePoint now) {
  const bool drop = happens(lane.random, rule.drop);
  const bool corrupt = happens(lane.random, rule.corrupt);
  const bool duplicate = happens(lane.random, rule.duplicate);
  const bool reorder = happens(lane.random, rule.reorder);
  const bool delay = happens(lane.random, rule.delay);
  const bool mark = happens(lane.random, rule.mark);
  if (drop) {
    lane.counters.dropped.add();
    return;
  }
  if (corrupt) {
    lane.counters.corrupted.add();
    flip_one_bit(datagram.bytes, lane.random);
  }
  if (mark && ecn_of(datagram.traffic_class) != Ecn::NotCapable) {
    lane.counters.marked.add();
    datagram.traffic_class = with_ecn(datagram.traffic_class, Ecn::Congested);
  }
  if (duplicate) {
    lane.counters.duplicated.add();
    lane.ready.push_back(datagram);
  }
  if (delay) {
    lane.counters.delayed.add();
    lane.held.push_back({std::move(datagram), now + rule.delay_by, 0});
  } else if (reorder) {
    lane.counters.reordered.add();
    const auto behind = static_cast<unsigned>(1 + lane.random() % 3);
    lane.held.push_back({std::move(datagram), now + kReorderLimit, behind});
  } else {
    lane.ready.push_back(std::move(datagram));
    release(lane, now, true);
  }
}

// Lets go of what is due; `one_passed`: another datagram has just gone by.
void FaultyWire::release(Lane& lane, TimePoint now, bool one_passed) {
  for (auto held = lane.held.begin(); held != lane.held.end();) {
    const bool waits_for_others = held->behind > 0;
    if (one_passed && waits_for_others) --held->behind;
    if (now >= held->until || (waits_for_others && held->behind == 0)) {
      lane.ready.push_back(std::move(held->datagram));
      held = lane.held.erase(held);
    } else {
      ++held;
    }
  }
}

void FaultyWire::send_ready(TimePoint now) {
  Lane& out = lanes_.front();
  release(out, now, false);
  for (Datagram& datagram : out.ready) {
    datagram.path.set_traffic_class(datagram.traffic_class);
    inner_.send_one(datagram.path, datagram.bytes, now);
  }
  out.ready.clear();
}

void FaultyWire::send(const Burst& burst, TimePoint now) noexcept {
  for (const Segment& segment : burst.segments()) {
    Datagram datagram;
    datagram.bytes.resize(segment.size());
    datagram.path = *segment.path;
    datagram.traffic_class = segment.path->traffic_class();
    burst.write(segment, 0, datagram.bytes);
    pass(Direction::Out, std::move(datagram), now);
  }
  send_ready(now);
}

void FaultyWire::send_one(const Path& path, std::span<const std::byte> datagram,
                          TimePoint now) noexcept {
  Datagram copy;
  copy.bytes.assign(datagram.begin(), datagram.end());
  copy.path = path;
  copy.traffic_class = path.traffic_class();
  pass(Direction::Out, std::move(copy), now);
  send_ready(now);
}

std::span<const Received> FaultyWire::receive(TimePoint now) noexcept {
  send_ready(now);
  for (const Received& received : inner_.receive(now)) {
    for (std::size_t i = 0; i < received.datagrams(); ++i) {
      const std::span bytes = received.datagram(i);
      pass(Direction::In,
           {{bytes.begin(), bytes.end()}, {}, received.source, received.traffic_class}, now);
    }
  }
  Lane& in = lanes_.back();
  release(in, now, false);
  delivered_ = std::exchange(in.ready, {});
  received_.clear();
  for (const Datagram& datagram : delivered_) {
    received_.push_back({datagram.bytes, 0, datagram.source, datagram.traffic_class});
  }
  return received_;
}

std::optional<TimePoint> FaultyWire::deadline() const noexcept {
  std::optional<TimePoint> earliest = inner_.deadline();
  for (const Lane& lane : lanes_) {
    for (const Held& held : lane.held) {
      if (!earliest || held.until < *earliest) earliest = held.until;
    }
  }
  return earliest;
}

}  // namespace ipoverbs::verbs::soft
