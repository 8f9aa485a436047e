#include "core/log.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/error.h"

namespace ipoverbs {

namespace {
constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> kLevels{{
    {"error", spdlog::level::err},
    {"warn", spdlog::level::warn},
    {"info", spdlog::level::info},
    {"debug", spdlog::level::debug},
    {"trace", spdlog::level::trace},
}};
}  // namespace

std::shared_ptr<Logger> make_stderr_logger(std::string_view level) {
  for (const auto& [name, value] : kLevels) {
    if (name != level) continue;
    auto logger =
        std::make_shared<Logger>("ipoverbs", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(value);
    logger->set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%l] %v");
    logger->flush_on(spdlog::level::debug);
    return logger;
  }
  throw UsageError(
      fmt::format("log level '{}' is not one of error, warn, info, debug, trace", level));
}

std::shared_ptr<Logger> make_null_logger() {
  return std::make_shared<Logger>("null", std::make_shared<spdlog::sinks::null_sink_mt>());
}

}  // namespace ipoverbs
