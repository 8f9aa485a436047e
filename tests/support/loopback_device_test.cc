#include "tests/support/loopback_device.h"

#include <gtest/gtest.h>

#include "tests/support/loopback_rig.h"

namespace ipoverbs::support {
namespace {

TEST(LoopbackQueues, CarryAMessageGatheredFromTwoPieces) {
  LoopbackNetwork network;
  Host a(network, kA);
  Host b(network, kB);
  establish(a, b);
  ASSERT_EQ(b.receive(7), 0);
  a.write(0, "over ");
  a.write(1, "verbs");
  ASSERT_EQ(a.send(3, std::vector{a.sge(0, 5), a.sge(1, 5)}), 0);
  EXPECT_EQ(a.poll(), Lines{"send 3"});
  EXPECT_EQ(b.poll(), Lines{"receive 7 of 10 bytes"});
  EXPECT_EQ(b.read(7, 10), "over verbs");
  EXPECT_EQ(network.rnr_count(), 0U);
}

}  // namespace
}  // namespace ipoverbs::support
