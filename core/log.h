// Logging: one object, passed by reference; there is no global logger. spdlog stands behind it and
// is seen by log.cc alone: its headers would cost every file that logs a second of compilation.
//
// Levels by purpose: error, the daemon or a peer cannot do its job and somebody must act; warn,
// something was lost or refused and will be tried again; info, a change of state that an operator
// wants in the journal (a session up, the device chosen), never once a packet; debug, what a
// developer asks for. QP numbers are written in hex, GID indices in decimal.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace spdlog {
class logger;
}

namespace ipoverbs {

// In order of urgency: a logger at one level says nothing of those after it.
enum class LogLevel { Error, Warn, Info, Debug, Trace };

// May be used by several threads at once.
class Logger {
 public:
  explicit Logger(std::unique_ptr<spdlog::logger> sink);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::Error, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::Warn, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::Info, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::Debug, format, fmt::make_format_args(args...));
  }

  [[nodiscard]] LogLevel level() const { return level_; }
  // Not while others log.
  void set_level(LogLevel level) { level_ = level; }

 private:
  void write(LogLevel level, fmt::string_view format, fmt::format_args args);

  std::unique_ptr<spdlog::logger> sink_;
  LogLevel level_ = LogLevel::Info;
};

// A logger to stderr, "[time] [level] text". `level` is one of error, warn, info, debug, trace.
// Throws UsageError for another word.
[[nodiscard]] std::shared_ptr<Logger> make_stderr_logger(std::string_view level);

// A logger that says nothing, for tests.
[[nodiscard]] std::shared_ptr<Logger> make_null_logger();

}  // namespace ipoverbs
