#include <iostream>
#include <string>
#include <vector>

#include "daemon/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return ipoverbs::daemon::run_program(args, std::cout, std::cerr);
}
