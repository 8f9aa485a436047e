// Settings: `key = value` pairs as the user gave them, from the command line and from a
// configuration file alike.
//
// Theory of operation. A Grammar is the list of keys that one command knows. Boost.Program_options
// reads the command line by it, with guessing of abbreviated names off. A configuration file goes
// line by line through the very same parser, each line as the one argument "--key=value", because
// the library's own reader of files gives no line numbers and cuts values at '#'. What comes out is
// a list of Settings that still are text; each remembers where it came from, so that every later
// complaint can say so. Nothing here knows what a value means.
//
// A configuration file is ASCII or UTF-8 text. A line is empty, a comment, or `key = value`. '#'
// starts a comment at the beginning of a line or after a blank, and is part of the value elsewhere.
// Lines end with LF alone. CR LF, a NUL byte, a line longer than kMaxLine and a last line without
// its newline (a file that was cut off: "10.0.0.0/2" may have been "10.0.0.0/24") are errors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ipoverbs::daemon {

inline constexpr std::size_t kMaxLine = 65536;               // bytes, without the newline
inline constexpr std::size_t kMaxConfig = 16 * 1024 * 1024;  // bytes of a configuration file

struct Setting {
  std::string key;
  std::string value;   // trimmed; never empty, except that of a flag
  std::string origin;  // how messages name it: "--mtu" or "node.conf:3: mtu"
};

// `text` between single quotes for a message that must stay one line: control bytes and bytes
// outside ASCII as \xNN, cut off after 60 bytes.
[[nodiscard]] std::string quote(std::string_view text);

// Throws UsageError "<origin>: <what>".
[[noreturn]] void refuse(const std::string& origin, std::string_view what);

struct Key {
  std::string_view name;
  std::string_view argument;  // how help names its value; empty: a flag, for the command line only
  std::string_view help;
  bool repeatable = false;
};

struct KeyGroup {
  std::string_view title;
  std::vector<Key> keys;
};

class Grammar {
 public:
  // `command`: as in "ipoverbs up", for messages.
  Grammar(std::string_view command, const std::vector<KeyGroup>& groups);

  // In the order given. Throws UsageError for an unknown key, a missing value, an argument that is
  // no option, and a key given twice that is not repeatable.
  [[nodiscard]] std::vector<Setting> parse_command_line(std::span<const std::string> args) const;
  // `name`: of the file, for messages. Same errors, and those of the file's form.
  [[nodiscard]] std::vector<Setting> parse_config(std::string_view text,
                                                  const std::string& name) const;
  // The keys and their help, for a terminal of 80 columns.
  [[nodiscard]] std::string help() const;

 private:
  // The library's. Its headers take longer to compile than most files that want settings.
  struct Description;

  [[nodiscard]] Setting parse_line(std::string_view line, const std::string& place) const;
  [[nodiscard]] std::vector<Setting> run_parser(const std::vector<std::string>& tokens,
                                                const std::string& place) const;
  void refuse_repetition(const std::vector<Setting>& settings) const;
  [[nodiscard]] const Key* find(std::string_view name) const;
  [[nodiscard]] std::string unknown(std::string_view name) const;

  std::string command_;
  std::vector<Key> keys_;
  std::shared_ptr<const Description> description_;
};

// Throws UsageError that names `path` if it cannot be read or is larger than kMaxConfig.
[[nodiscard]] std::string read_config_file(const std::string& path);

}  // namespace ipoverbs::daemon
