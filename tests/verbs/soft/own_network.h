// A network namespace of the test's own, with addresses on its loopback interface: 192.0.2.1 and
// .2, 2001:db8::1 and ::2. Tests in it need no port of the machine and can have port 4791 to
// themselves.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace ipoverbs::verbs::soft::test {

// Register with AddGlobalTestEnvironment(); where no namespace can be had, in_own_network() says
// why.
class OwnNetwork : public testing::Environment {
 public:
  void SetUp() override;
};

// Of the loopback interface; 65536 to begin with.
[[nodiscard]] bool set_loopback_mtu(int mtu);

// Empty, or why the namespace is not there: tests skip with it.
[[nodiscard]] const std::string& why_no_network();

}  // namespace ipoverbs::verbs::soft::test
