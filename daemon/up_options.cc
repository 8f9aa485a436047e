#include "daemon/up_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ipoverbs::daemon {

std::string default_control_path(std::string_view tun_name) {
  return fmt::format("/run/ipoverbs/{}.sock", tun_name);
}

std::string UpDraft::origin(const std::string& key) const {
  const auto given = origins.find(key);
  return given == origins.end() ? "--" + key : given->second;
}

UpCommand build_up(const std::vector<Setting>& file, const std::vector<Setting>& command_line,
                   const InterfaceIndex& interface_index) {
  UpDraft draft;
  draft.interface_index = &interface_index;
  draft.command.options.tun.name = kDefaultTun;
  for (const Setting& setting : file) {
    if (setting.key == "config") refuse(setting.origin, "a file cannot name another");
  }
  for (const auto* source : {&file, &command_line}) {
    for (const Setting& setting : *source) apply_setting(draft, setting);
  }
  complete_draft(draft);
  return std::move(draft.command);
}

UpCommand parse_up(std::span<const std::string> args, const InterfaceIndex& interface_index) {
  const std::vector<Setting> command_line = up_grammar().parse_command_line(args);
  const auto given = [&](std::string_view key) {
    return std::ranges::find(command_line, key, &Setting::key);
  };
  if (given("help") != command_line.end()) {
    UpCommand command;
    command.help = true;
    return command;
  }
  std::vector<Setting> file;
  if (const auto config = given("config"); config != command_line.end()) {
    file = up_grammar().parse_config(read_config_file(config->value), config->value);
  }
  return build_up(file, command_line, interface_index);
}

}  // namespace ipoverbs::daemon
