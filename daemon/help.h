// What `--help` says.
#pragma once

#include <string>
#include <string_view>

namespace ipoverbs::daemon {

[[nodiscard]] std::string_view general_help();
// `options`: Grammar::help().
[[nodiscard]] std::string up_help(std::string_view options);
[[nodiscard]] std::string status_help(std::string_view options);
[[nodiscard]] std::string devices_help(std::string_view options);

}  // namespace ipoverbs::daemon
