// What the programs in this folder share. Each tries one thing that the kernel does and that is
// written down nowhere, or differs among kernels, and says which code relies on it. They are the
// first to run on a new machine: one that fails names the code that has to change.
//
// Exit status 0: as assumed. 1: not so. 77: cannot be tried here, with the reason.
#pragma once

#include <cstdlib>
#include <exception>
#include <functional>

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

// Runs `tried` in a network namespace of its own; returns the exit status.
inline int try_in_namespace(const std::function<void(Assumption&)>& tried) {
  if (const std::string reason = why_no_tun(); !reason.empty()) {
    fmt::print("skipped: {}\n", reason);
    return 77;
  }
  try {
    TestNamespace().enter();
    Assumption assumption;
    tried(assumption);
    return assumption.all() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& e) {
    fmt::print("failed: {}\n", e.what());
    return EXIT_FAILURE;
  }
}

}  // namespace ipoverbs::tun
