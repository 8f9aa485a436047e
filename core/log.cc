#include "core/log.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/error.h"

namespace ipoverbs {

namespace {

struct Level {
  std::string_view name;
  LogLevel level;
  spdlog::level::level_enum in_spdlog;
};

constexpr std::array kLevels{
    Level{"error", LogLevel::Error, spdlog::level::err},
    Level{"warn", LogLevel::Warn, spdlog::level::warn},
    Level{"info", LogLevel::Info, spdlog::level::info},
    Level{"debug", LogLevel::Debug, spdlog::level::debug},
    Level{"trace", LogLevel::Trace, spdlog::level::trace},
};

}  // namespace

Logger::Logger(std::unique_ptr<spdlog::logger> sink) : sink_(std::move(sink)) {
  sink_->set_level(spdlog::level::trace);  // it is level_ that decides
}

Logger::~Logger() = default;

void Logger::write(LogLevel level, fmt::string_view format, fmt::format_args args) {
  if (level > level_) return;
  fmt::memory_buffer line;
  fmt::vformat_to(fmt::appender(line), format, args);
  sink_->log(kLevels[static_cast<std::size_t>(level)].in_spdlog,
             spdlog::string_view_t(line.data(), line.size()));
}

std::shared_ptr<Logger> make_stderr_logger(std::string_view level) {
  for (const auto& known : kLevels) {
    if (known.name != level) continue;
    auto sink = std::make_unique<spdlog::logger>("ipoverbs",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    sink->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%l] %v");
    sink->flush_on(spdlog::level::debug);
    auto logger = std::make_shared<Logger>(std::move(sink));
    logger->set_level(known.level);
    return logger;
  }
  throw UsageError(
      fmt::format("log level '{}' is not one of error, warn, info, debug, trace", level));
}

std::shared_ptr<Logger> make_null_logger() {
  return std::make_shared<Logger>(
      std::make_unique<spdlog::logger>("null", std::make_shared<spdlog::sinks::null_sink_mt>()));
}

}  // namespace ipoverbs
