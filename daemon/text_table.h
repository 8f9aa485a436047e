// Tables of text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace ipoverbs::daemon {

// One line a row, columns two blanks apart and as wide as their widest cell, each line led by
// `indent`. Rows have the same number of cells; an empty cell is shown as "-".
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows,
                                       const std::string& indent = "");

}  // namespace ipoverbs::daemon
