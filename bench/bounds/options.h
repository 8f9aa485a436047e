// What the command lines of copy1 and ring2 say.
#pragma once

#include <string>
#include <vector>

#include "tun/config.h"

namespace ipoverbs::bounds {

struct Options {
  std::vector<tun::Config> sides;  // of the interfaces that this process owns
  bool superpackets = true;
  // ring2 alone, one of the two: the path of the UNIX socket where the processes meet.
  std::string listen;
  std::string connect;
};

// Of a program that owns `sides` interfaces. Throws UsageError; prints the help and ends the
// process if it is asked for.
[[nodiscard]] Options parse_options(int argc, char** argv, std::size_t sides);

// The exit status of `run`: its exceptions become a line on standard error.
[[nodiscard]] int exit_status(const char* program, void (*run)(int, char**), int argc, char** argv);

}  // namespace ipoverbs::bounds
