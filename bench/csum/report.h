// What the checksum benchmark found: rows, their medians and the goals, as JSON and as a table.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ipoverbs::bench {

struct Setting {
  std::size_t size = 0;     // bytes summed or copied by one call
  std::string temperature;  // "hot", "cold", "cold-source"
  friend auto operator<=>(const Setting&, const Setting&) = default;
};

// One measurement: GB/s (10^9 bytes of `size` a second of CPU time) in one round.
struct Row {
  std::string contestant;
  Setting setting;
  int round = 0;
  double gb_per_s = 0;
};

// The median over rounds of one contestant's figure divided by another's of the same round.
struct Goal {
  std::string name;
  double value = 0;
  double goal = 0;
  [[nodiscard]] bool met() const { return value >= goal; }
};

// Where and how the rows were made: it stands beside the figures.
struct Setup {
  std::string cpu;
  std::string compiler;
  std::string flags;
  std::string target;  // Highway's name of the instruction set
};

class Report {
 public:
  explicit Report(Setup setup) : setup_(std::move(setup)) {}

  void add(Row row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] const Setup& setup() const { return setup_; }
  // In the order of their first row.
  [[nodiscard]] std::vector<std::string> contestants() const;
  [[nodiscard]] std::vector<std::size_t> sizes() const;
  [[nodiscard]] std::vector<std::string> temperatures() const;
  // nullopt if there is no such row.
  [[nodiscard]] std::optional<double> median(const std::string& contestant,
                                             const Setting& setting) const;
  // The goals whose contestants were measured.
  [[nodiscard]] std::vector<Goal> goals() const;

  // {"tables": {"csum": {"rows": [...], "goals": [...], "setup": {...}}}}
  [[nodiscard]] nlohmann::json json() const;
  // Medians, a table for each temperature, then the goals.
  void print(std::ostream& out) const;

 private:
  [[nodiscard]] std::vector<double> values(const std::string& contestant,
                                           const Setting& setting) const;
  void add_goals(std::vector<Goal>& goals, const std::string& contestant, const std::string& other,
                 const std::string& temperature, const std::vector<std::size_t>& sizes,
                 double goal) const;

  Setup setup_;
  std::vector<Row> rows_;
};

}  // namespace ipoverbs::bench
