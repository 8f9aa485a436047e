// Tries one assumption about the kernel:
//
//   platform NAME
//
// Exit status 0: as assumed. 1: not so. 2: no assumption of that name. 77: cannot be tried here,
// with the reason.
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {
namespace {

struct Named {
  std::string_view name;
  void (*tries)(Assumption&);
};

constexpr Named kAssumptions[] = {
    {"abstract_socket_namespace", abstract_socket_namespace},
    {"tun_down_loses_addresses", tun_down_loses_addresses},
    {"tun_full_queue", tun_full_queue},
    {"tun_header_before_link_state", tun_header_before_link_state},
    {"tun_mtu", tun_mtu},
    {"tun_namespace", tun_namespace},
    {"tun_offload_sets", tun_offload_sets},
    {"tun_refused_headers", tun_refused_headers},
    {"tun_second_opener", tun_second_opener},
};

int try_in_namespace(const Named& assumed) {
  if (const std::string reason = why_no_tun(); !reason.empty()) {
    fmt::print("skipped: {}\n", reason);
    return 77;
  }
  try {
    TestNamespace().enter();
    Assumption assumption;
    assumed.tries(assumption);
    return assumption.all() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& e) {
    fmt::print("failed: {}\n", e.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace ipoverbs::tun

int main(int argc, char** argv) {
  using namespace ipoverbs::tun;
  const std::string_view name = argc == 2 ? argv[1] : "";
  for (const Named& assumed : kAssumptions) {
    if (assumed.name == name) return try_in_namespace(assumed);
  }
  fmt::print("'{}' is no assumption\n", name);
  return 2;
}
