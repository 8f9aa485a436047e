#include "verbs/soft/fault_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::verbs::soft {

namespace {

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw UsageError(fmt::format("fault plan: '{}': {}", word, why));
}

// Cuts what stands before the first `separator` off `text`; all of it if there is none.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

template <class T, class... Base>
T number(std::string_view word, std::string_view digits, Base... base) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base...);
  if (error != std::errc{} || stop != end) refuse(word, fmt::format("'{}' is no number", digits));
  return value;
}

std::bitset<256> opcodes(std::string_view word, std::string_view name) {
  std::bitset<256> set;
  const auto add = [&](Opcode first, Opcode last) {
    for (auto i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(last); ++i)
      set.set(i);
  };
  if (name.empty() || name == "any") {
    set.set();
  } else if (name == "send") {
    add(Opcode::SendFirst, Opcode::SendOnlyImm);
  } else if (name == "answer") {
    add(Opcode::Acknowledge, Opcode::Acknowledge);
  } else if (name == "cm") {
    add(Opcode::UdSendOnly, Opcode::UdSendOnlyImm);
  } else if (name.starts_with("0x")) {
    const auto opcode = number<unsigned>(word, name.substr(2), 16);
    if (opcode > 0xff) refuse(word, "an opcode has eight bits");
    set.set(opcode);
  } else {
    refuse(word, "opcodes are any, send, answer, cm or a number like 0x04");
  }
  return set;
}

Duration time_of(std::string_view word, std::string_view text) {
  if (text.ends_with("us")) {
    return std::chrono::microseconds(number<std::uint32_t>(word, text.substr(0, text.size() - 2)));
  }
  if (text.ends_with("ms")) {
    return std::chrono::milliseconds(number<std::uint32_t>(word, text.substr(0, text.size() - 2)));
  }
  refuse(word, "a time ends in us or ms");
}

void add_fault(FaultRule& rule, std::string_view word, std::string_view fault) {
  std::string_view value = fault;
  const std::string_view name = cut(value, '=');
  const double probability = number<double>(word, cut(value, '@'));
  if (!(probability >= 0 && probability <= 1)) refuse(word, "a probability is from 0 to 1");
  if (name == "drop") {
    rule.drop = probability;
  } else if (name == "corrupt") {
    rule.corrupt = probability;
  } else if (name == "mark") {
    rule.mark = probability;
  } else if (name == "duplicate") {
    rule.duplicate = probability;
  } else if (name == "reorder") {
    rule.reorder = probability;
  } else if (name == "delay") {
    rule.delay = probability;
    rule.delay_by = time_of(word, value);
    return;
  } else {
    refuse(word, "a fault is drop, corrupt, mark, duplicate, reorder or delay");
  }
  if (!value.empty()) refuse(word, "only delay has a time");
}

FaultRule rule_of(std::string_view word) {
  std::string_view faults = word;
  std::string_view set = cut(faults, ':');
  const std::string_view direction = cut(set, '/');
  FaultRule rule;
  if (direction == "in") {
    rule.direction = Direction::In;
  } else if (direction != "out") {
    refuse(word, "a rule begins with out or in");
  }
  rule.opcodes = opcodes(word, set);
  if (faults.empty()) refuse(word, "no fault is named");
  while (!faults.empty()) add_fault(rule, word, cut(faults, ','));
  return rule;
}

}  // namespace

FaultPlan parse_fault_plan(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const std::string_view word = cut(text, ' ');
    if (word.empty()) continue;
    if (word.starts_with("seed=")) {
      plan.seed = number<std::uint64_t>(word, word.substr(5));
    } else if (word == "no-gso") {
      plan.segmentation = false;
    } else if (word == "no-gro") {
      plan.coalescing = false;
    } else {
      plan.rules.push_back(rule_of(word));
    }
  }
  return plan;
}

}  // namespace ipoverbs::verbs::soft
