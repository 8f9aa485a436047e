// Logging: spdlog's logger, passed by reference. There is no global logger.
//
// Levels by purpose: error, the daemon or a peer cannot do its job and somebody must act; warn,
// something was lost or refused and will be tried again; info, a change of state that an operator
// wants in the journal (a session up, the device chosen), never once a packet; debug, what a
// developer asks for. QP numbers are written in hex, GID indices in decimal.
#pragma once

#include <memory>
#include <string_view>

#include <spdlog/logger.h>

namespace ipoverbs {

using Logger = spdlog::logger;

// A logger to stderr, "[time] [level] text". `level` is one of error, warn, info, debug, trace.
// Throws UsageError for another word.
[[nodiscard]] std::shared_ptr<Logger> make_stderr_logger(std::string_view level);

// A logger that says nothing, for tests.
[[nodiscard]] std::shared_ptr<Logger> make_null_logger();

}  // namespace ipoverbs
