// The program's commands.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace ipoverbs::daemon {

// Runs the program with the arguments behind its name. Text that was asked for goes to `out`, one
// line of complaint, "ipoverbs: ...", to `err`. Returns the exit status: 0 success; 1 it ran and
// failed; 2 it did not start. `up` returns when the daemon has ended and logs to standard error.
[[nodiscard]] int run_program(std::span<const std::string> args, std::ostream& out,
                              std::ostream& err);

}  // namespace ipoverbs::daemon
