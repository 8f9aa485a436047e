#include "daemon/text_table.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace ipoverbs::daemon {

namespace {

std::string shown(const std::string& cell) { return cell.empty() ? "-" : cell; }

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], shown(row[i]).size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", shown(row[i]), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace ipoverbs::daemon
