// Assumptions about the kernel. Each file in this folder tries one thing that the kernel does and
// that is written down nowhere, or differs among kernels, and says which code relies on it. They
// are the first to run on a new machine: one that fails names the code that has to change.
#pragma once

#include <fmt/format.h>

#include "tests/tun/namespace.h"
#include "tests/tun/rig.h"

namespace ipoverbs::tun {

class Assumption {
 public:
  // Says what holds and what does not.
  template <class A, class B>
  void equal(const char* what, const A& actual, const B& expected) {
    const bool same = actual == expected;
    fmt::print("{}: {}, {} expected{}\n", what, actual, expected, same ? "" : "  <-- not so");
    holds_ = holds_ && same;
  }
  void holds(const char* what, bool so) { equal(what, so, true); }
  [[nodiscard]] bool all() const { return holds_; }

 private:
  bool holds_ = true;
};

// One file each, by this name; run in a network namespace of its own.
void abstract_socket_namespace(Assumption& assumption);
void tun_down_loses_addresses(Assumption& assumption);
void tun_full_queue(Assumption& assumption);
void tun_header_before_link_state(Assumption& assumption);
void tun_mtu(Assumption& assumption);
void tun_namespace(Assumption& assumption);
void tun_offload_sets(Assumption& assumption);
void tun_refused_headers(Assumption& assumption);
void tun_second_opener(Assumption& assumption);

}  // namespace ipoverbs::tun
