#include "bench/csum/report.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

namespace ipoverbs::bench {
namespace {

// The middle one, or the mean of the two in the middle; `values` isn't empty.
double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <class T>
void add_once(std::vector<T>& all, const T& value) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(value);
}

}  // namespace

std::vector<std::string> Report::contestants() const {
  std::vector<std::string> all;
  for (const Row& row : rows_) add_once(all, row.contestant);
  return all;
}

std::vector<std::size_t> Report::sizes() const {
  std::vector<std::size_t> all;
  for (const Row& row : rows_) add_once(all, row.setting.size);
  return all;
}

std::vector<std::string> Report::temperatures() const {
  std::vector<std::string> all;
  for (const Row& row : rows_) add_once(all, row.setting.temperature);
  return all;
}

std::vector<double> Report::values(const std::string& contestant, const Setting& setting) const {
  std::vector<double> found;
  for (const Row& row : rows_) {
    if (row.contestant == contestant && row.setting == setting) found.push_back(row.gb_per_s);
  }
  return found;
}

std::optional<double> Report::median(const std::string& contestant, const Setting& setting) const {
  const std::vector<double> found = values(contestant, setting);
  if (found.empty()) return std::nullopt;
  return median_of(found);
}

void Report::add_goals(std::vector<Goal>& goals, const std::string& contestant,
                       const std::string& other, const std::string& temperature,
                       const std::vector<std::size_t>& sizes, double goal) const {
  for (const std::size_t size : sizes) {
    const std::vector<double> ours = values(contestant, {size, temperature});
    const std::vector<double> theirs = values(other, {size, temperature});
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      ratios.push_back(ours[i] / theirs[i]);
    }
    if (ratios.empty()) continue;
    goals.push_back({fmt::format("{} / {}, {}, {} bytes", contestant, other, temperature, size),
                     median_of(ratios), goal});
  }
}

std::vector<Goal> Report::goals() const {
  const std::vector<std::size_t> from_1500 = {1500, 4096, 9000, 16384, 65520};
  std::vector<Goal> goals;
  add_goals(goals, "fused", "memcpy", "hot", {64, 256}, 1.0);
  add_goals(goals, "fused", "memcpy", "hot", from_1500, 0.9);
  add_goals(goals, "fused", "memcpy", "cold", sizes(), 1.0);
  add_goals(goals, "fused", "memcpy-then-sum", "hot", {256, 1500, 4096, 9000, 16384}, 1.6);
  add_goals(goals, "sum", "scalar", "hot", from_1500, 3.5);
  add_goals(goals, "sum", "rte_raw_cksum", "hot", from_1500, 1.2);
  return goals;
}

nlohmann::json Report::json() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : rows_) {
    rows.push_back(
        {{"contestant", row.contestant},
         {"setting", {{"size", row.setting.size}, {"temperature", row.setting.temperature}}},
         {"metric", "gb_per_s"},
         {"unit", "GB/s"},
         {"round", row.round},
         {"value", row.gb_per_s}});
  }
  nlohmann::json reached = nlohmann::json::array();
  for (const Goal& goal : goals()) {
    reached.push_back(
        {{"name", goal.name}, {"value", goal.value}, {"goal", goal.goal}, {"met", goal.met()}});
  }
  return {{"tables",
           {{"csum",
             {{"rows", rows},
              {"goals", reached},
              {"setup",
               {{"cpu", setup_.cpu},
                {"compiler", setup_.compiler},
                {"flags", setup_.flags},
                {"highway_target", setup_.target}}}}}}}};
}

void Report::print(std::ostream& out) const {
  out << fmt::format("{}\ncompiler {}, flags {}, Highway target {}\n", setup_.cpu, setup_.compiler,
                     setup_.flags, setup_.target);
  for (const std::string& temperature : temperatures()) {
    out << fmt::format("\n{}: GB/s, median of the rounds\n{:>17}", temperature, "bytes");
    for (const std::size_t size : sizes()) out << fmt::format("{:>9}", size);
    out << '\n';
    for (const std::string& contestant : contestants()) {
      out << fmt::format("{:>17}", contestant);
      for (const std::size_t size : sizes()) {
        const auto value = median(contestant, {size, temperature});
        out << (value ? fmt::format("{:>9.1f}", *value) : fmt::format("{:>9}", "-"));
      }
      out << '\n';
    }
  }
  out << "\ngoals: median of the rounds' ratios\n";
  for (const Goal& goal : goals()) {
    out << fmt::format("{:>6.2f}, goal {:.1f}  {}  {}\n", goal.value, goal.goal,
                       goal.met() ? "met   " : "MISSED", goal.name);
  }
}

}  // namespace ipoverbs::bench
