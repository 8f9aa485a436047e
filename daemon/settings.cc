#include "daemon/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include <boost/program_options/errors.hpp>
#include <boost/program_options/option.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::daemon {

namespace po = boost::program_options;

namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || kBlanks.contains(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

void refuse_form(std::string_view line, const std::string& place) {
  if (line.size() > kMaxLine) {
    refuse(place,
           fmt::format("the line has {} bytes; at most {} are allowed", line.size(), kMaxLine));
  }
  if (line.contains('\0')) refuse(place, "the line has a NUL byte; the file must be plain text");
  if (line.ends_with('\r')) {
    refuse(place, "the line ends with CR LF; save the file with Unix line ends (LF)");
  }
}

// `place` is "" for the command line.
Setting to_setting(const po::option& option, const std::string& place, const std::string& command) {
  if (option.position_key >= 0) {
    throw UsageError(fmt::format("unexpected argument {}; '{} --help' shows the usage",
                                 quote(option.value.at(0)), command));
  }
  Setting setting{option.string_key, "",
                  place.empty() ? "--" + option.string_key : place + ": " + option.string_key};
  if (option.value.empty()) return setting;  // a flag
  setting.value = trim(option.value[0]);
  // The library lets an option swallow the next one.
  const bool swallowed =
      option.original_tokens.size() > 1 && option.original_tokens[1].starts_with("--");
  if (swallowed || setting.value.empty()) refuse(setting.origin, "a value is missing");
  return setting;
}

}  // namespace

struct Grammar::Description {
  po::options_description options{80, 44};
};

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxShown = 60;
  std::string shown = "'";
  for (const char c : text.substr(0, kMaxShown)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown + (text.size() > kMaxShown ? "...'" : "'");
}

void refuse(const std::string& origin, std::string_view what) {
  throw UsageError(fmt::format("{}: {}", origin, what));
}

Grammar::Grammar(std::string_view command, const std::vector<KeyGroup>& groups)
    : command_(command) {
  auto description = std::make_shared<Description>();
  for (const KeyGroup& group : groups) {
    po::options_description part(std::string(group.title), 80, 44);
    for (const Key& key : group.keys) {
      keys_.push_back(key);
      const std::string name(key.name);
      const std::string help(key.help);
      if (key.argument.empty()) {
        part.add_options()(name.c_str(), help.c_str());
      } else {
        part.add_options()(name.c_str(),
                           po::value<std::string>()->value_name(std::string(key.argument)),
                           help.c_str());
      }
    }
    description->options.add(part);
  }
  description_ = std::move(description);
}

std::string Grammar::help() const {
  std::ostringstream text;
  text << description_->options;
  return text.str();
}

const Key* Grammar::find(std::string_view name) const {
  const auto found = std::ranges::find(keys_, name, &Key::name);
  return found == keys_.end() ? nullptr : &*found;
}

std::string Grammar::unknown(std::string_view name) const {
  const auto nearest = std::ranges::min_element(
      keys_, {}, [&](const Key& key) { return edit_distance(key.name, name.substr(0, 64)); });
  if (nearest != keys_.end() && edit_distance(nearest->name, name.substr(0, 64)) <= 2) {
    return fmt::format("unknown option {}; did you mean '{}'?", quote(name), nearest->name);
  }
  return fmt::format("unknown option {}; '{} --help' lists the options", quote(name), command_);
}

// Errors of the library become ours here.
std::vector<Setting> Grammar::run_parser(const std::vector<std::string>& tokens,
                                         const std::string& place) const {
  using Style = po::command_line_style::style_t;
  constexpr int kStyle = Style::allow_long | Style::long_allow_adjacent | Style::long_allow_next;
  const std::string prefix = place.empty() ? "" : place + ": ";
  const auto bare = [](std::string name) { return name.erase(0, name.find_first_not_of('-')); };
  try {
    std::vector<Setting> settings;
    const auto parsed =
        po::command_line_parser(tokens).options(description_->options).style(kStyle).run();
    for (const po::option& option : parsed.options)
      settings.push_back(to_setting(option, place, command_));
    return settings;
  } catch (const po::unknown_option& e) {
    throw UsageError(prefix + unknown(bare(e.get_option_name())));
  } catch (const po::invalid_command_line_syntax& e) {
    const bool extra = e.kind() == po::invalid_syntax::extra_parameter;
    throw UsageError(fmt::format("{}--{}: {}", prefix, bare(e.get_option_name()),
                                 extra ? "takes no value" : "a value is missing"));
  } catch (const po::error& e) {
    throw UsageError(
        fmt::format("{}{}; '{} --help' shows the usage", prefix, quote(e.what()), command_));
  }
}

void Grammar::refuse_repetition(const std::vector<Setting>& settings) const {
  std::map<std::string_view, const Setting*> seen;
  for (const Setting& setting : settings) {
    if (find(setting.key)->repeatable) continue;
    const auto [first, inserted] = seen.emplace(setting.key, &setting);
    if (inserted) continue;
    const std::string& earlier = first->second->origin;
    refuse(setting.origin, earlier == setting.origin
                               ? std::string("given more than once; give it once")
                               : fmt::format("already given at {}; give it once", earlier));
  }
}

std::vector<Setting> Grammar::parse_command_line(std::span<const std::string> args) const {
  std::vector<Setting> settings = run_parser({args.begin(), args.end()}, "");
  refuse_repetition(settings);
  return settings;
}

Setting Grammar::parse_line(std::string_view line, const std::string& place) const {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    refuse(place, fmt::format("{} is not 'key = value'", quote(line)));
  }
  const std::string key(trim(line.substr(0, equals)));
  const std::string value(trim(line.substr(equals + 1)));
  const Key* known = find(key);
  if (known == nullptr) refuse(place, unknown(key));
  if (known->argument.empty()) {
    refuse(place, fmt::format("'{}' belongs on the command line, not into a file", key));
  }
  if (value.empty()) refuse(place, fmt::format("{}: a value is missing", key));
  return run_parser({fmt::format("--{}={}", key, value)}, place).at(0);
}

std::vector<Setting> Grammar::parse_config(std::string_view text, const std::string& name) const {
  std::vector<Setting> settings;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string place = fmt::format("{}:{}", name, number);
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    refuse_form(line, place);
    if (end == std::string_view::npos) {
      refuse(place, "the last line does not end with a newline; the file may have been cut off");
    }
    text.remove_prefix(end + 1);
    const std::string_view content = trim(without_comment(line));
    if (!content.empty()) settings.push_back(parse_line(content, place));
  }
  refuse_repetition(settings);
  return settings;
}

std::string read_config_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> block;
  while (file && text.size() <= kMaxConfig) {
    file.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > kMaxConfig) {
    throw UsageError(fmt::format("--config: {} is larger than {} bytes", quote(path), kMaxConfig));
  }
  if (!file.is_open() || file.bad()) {
    throw UsageError(
        fmt::format("--config: cannot read {}: {}", quote(path), std::strerror(errno)));
  }
  return text;
}

}  // namespace ipoverbs::daemon
