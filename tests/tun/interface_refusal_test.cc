// What an interface is refused for, in one line that says what to do, and TUNs that were there
// before.
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/tun/namespace.h"
#include "tests/tun/rig.h"
#include "tun/interface.h"

namespace ipoverbs::tun {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InterfaceRefusalTest : public NamespaceTest {
 protected:
  Interface create(const Config& config) { return Interface::create(config, *logger_); }

  std::shared_ptr<Logger> logger_ = make_null_logger();
};

TEST_F(InterfaceRefusalTest, WhatValidateRefuses) {
  Config config = test_config();
  config.mtu = IpMtu(1000);
  EXPECT_THAT(usage_error(config), HasSubstr("1280"));
  EXPECT_FALSE(RouteSocket().find_link("t0"));
}

TEST_F(InterfaceRefusalTest, SecondOpener) {
  for (const unsigned queues : {1U, 4U}) {
    Config config = test_config();
    config.queues = queues;
    const Interface first = create(config);
    EXPECT_THAT(usage_error(config), HasSubstr("t0 already belongs to process"));
    EXPECT_TRUE(RouteSocket().find_link("t0").value().up);  // and the first has taken no harm
  }
}

TEST_F(InterfaceRefusalTest, TunOfAnotherProgram) {
  for (const QueueMode mode : {QueueMode::Single, QueueMode::Multi}) {
    const Fd theirs = open_queue("t0", mode, Attach::Create);
    EXPECT_THAT(usage_error(test_config()), HasSubstr("in use by another program"));
  }
}

TEST_F(InterfaceRefusalTest, NameOfAnotherKindOfInterface) {
  Config config = test_config();
  config.name = "lo";
  EXPECT_THAT(usage_error(config), HasSubstr("the name lo is taken"));
}

TEST_F(InterfaceRefusalTest, NoDevice) {
  with_empty_directory("/dev/net", [] {
    EXPECT_THAT(usage_error(test_config()),
                AllOf(HasSubstr("no /dev/net/tun"), HasSubstr("modprobe tun")));
  });
}

TEST_F(InterfaceRefusalTest, DeviceWithoutDriver) {
  with_empty_directory("/dev/net", [] {
    ASSERT_EQ(::mknod("/dev/net/tun", S_IFCHR | 0600, ::makedev(10, 254)), 0);
    EXPECT_THAT(usage_error(test_config()), HasSubstr("modprobe tun"));
  });
}

TEST_F(InterfaceRefusalTest, DeviceOfAnotherUser) {
  with_empty_directory("/dev/net", [] {
    ASSERT_EQ(::mknod("/dev/net/tun", S_IFCHR | 0600, ::makedev(10, 200)), 0);
    EXPECT_EQ(usage_error(test_config()), "");
    as_nobody([] {
      EXPECT_THAT(usage_error(test_config()), HasSubstr("may not be opened by this user"));
    });
  });
}

TEST_F(InterfaceRefusalTest, NoPermissionToMakeOne) {
  without_net_admin(
      [] { EXPECT_THAT(usage_error(test_config()), HasSubstr("needs CAP_NET_ADMIN")); });
}

TEST_F(InterfaceRefusalTest, RouteThatGoesElsewhere_LeavesNothingBehind) {
  Config other = test_config();
  other.name = "t1";
  other.addresses = {prefix("10.81.0.1/16")};
  other.routes = {prefix("10.82.0.0/16"), prefix("fd82::/64")};
  const Interface t1 = create(other);
  const std::size_t descriptors = open_descriptors();
  for (const char* taken : {"10.81.0.0/16", "10.82.0.0/16", "fd82::/64"}) {
    Config config = test_config();
    config.routes.push_back(prefix(taken));
    EXPECT_THAT(usage_error(config), AllOf(HasSubstr("already"), HasSubstr(taken)));
  }
  EXPECT_FALSE(RouteSocket().find_link("t0"));
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST_F(InterfaceRefusalTest, Ipv6WhereItIsDisabled) {
  std::ofstream("/proc/sys/net/ipv6/conf/default/disable_ipv6") << 1;
  EXPECT_THAT(usage_error(test_config()), HasSubstr("disable_ipv6"));
  Config config = test_config();
  config.addresses = {prefix("10.77.0.1/24")};
  config.routes = {};
  EXPECT_EQ(usage_error(config), "");
}

TEST_F(InterfaceRefusalTest, PersistentTun_IsLeftAsItWas) {
  make_persistent_tun("t0", QueueMode::Multi);
  RouteSocket socket;
  const LinkInfo before = socket.find_link("t0").value();
  {
    const Interface t0 = create(test_config());
    EXPECT_EQ(t0.index(), before.index);
    EXPECT_THAT(socket.addresses(t0.index()), SizeIs(2));
  }
  const auto after = socket.find_link("t0");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->index, before.index);
  EXPECT_FALSE(after->up);
  EXPECT_EQ(after->mtu, before.mtu);
  EXPECT_EQ(after->queue_length, before.queue_length);
  EXPECT_THAT(socket.addresses(before.index), IsEmpty());
}

TEST_F(InterfaceRefusalTest, PersistentTunThatIsUp_KeepsWhatWasThere) {
  make_persistent_tun("t0", QueueMode::Multi);
  set_link_up("t0", true);
  RouteSocket socket;
  const int index = socket.find_link("t0").value().index;
  ASSERT_EQ(socket.change_link(index, {.mtu = 9000}), 0);
  ASSERT_EQ(socket.add_address(index, prefix("10.77.0.1/24")), 0);
  std::ignore = create(test_config());
  EXPECT_TRUE(socket.find_link("t0").value().up);
  EXPECT_EQ(socket.find_link("t0").value().mtu, 9000U);
  const auto left = socket.addresses(index);
  EXPECT_EQ(std::ranges::count(left, prefix("10.77.0.1/24")), 1);
  EXPECT_EQ(std::ranges::count(left, prefix("fd77::1/64")), 0);
  EXPECT_THAT(socket.routes(index), testing::Not(testing::Contains(prefix("10.78.0.0/16"))));
}

TEST_F(InterfaceRefusalTest, PersistentTunWithForeignSettings_IsSetRight) {
  {
    const Fd queue = open_queue("t0", QueueMode::Multi, Attach::Create);
    const int size = 12;
    const int buffer = 4096;
    const int big = 0;
    ASSERT_EQ(::ioctl(queue.get(), TUNSETPERSIST, 1UL), 0);
    ASSERT_EQ(::ioctl(queue.get(), TUNSETVNETHDRSZ, &size), 0);
    ASSERT_EQ(::ioctl(queue.get(), TUNSETVNETLE, &big), 0);
    ASSERT_EQ(::ioctl(queue.get(), TUNSETSNDBUF, &buffer), 0);
  }
  const Interface t0 = create(test_config());
  int size = 0;
  int little_endian = 0;
  EXPECT_EQ(::ioctl(t0.queues().front(), TUNGETVNETHDRSZ, &size), 0);
  EXPECT_EQ(::ioctl(t0.queues().front(), TUNGETVNETLE, &little_endian), 0);
  int buffer = 0;
  EXPECT_EQ(::ioctl(t0.queues().front(), TUNGETSNDBUF, &buffer), 0);
  EXPECT_EQ(size, 10);
  EXPECT_EQ(little_endian, 1);
  EXPECT_EQ(buffer, std::numeric_limits<int>::max());
}

TEST_F(InterfaceRefusalTest, PersistentTunWithOneQueue_ServesOne) {
  make_persistent_tun("t0", QueueMode::Single);
  EXPECT_THAT(usage_error(test_config()), HasSubstr("has a single queue, not 2"));
  Config config = test_config();
  config.queues = 1;
  EXPECT_EQ(usage_error(config), "");
}

TEST_F(InterfaceRefusalTest, PersistentTunOfOurs_ServesWithoutPermission) {
  make_persistent_tun("t0", QueueMode::Multi);
  {
    RouteSocket socket;
    const int index = socket.find_link("t0").value().index;
    ASSERT_EQ(socket.change_link(index, {.up = true, .mtu = 65520}), 0);
    for (const Prefix& address : test_config().addresses) {
      ASSERT_EQ(socket.add_address(index, address), 0);
    }
    for (const Prefix& route : test_config().routes) ASSERT_EQ(socket.add_route(index, route), 0);
  }
  without_net_admin([&] {
    const Interface t0 = create(test_config());
    EXPECT_TRUE(t0.offloads().write.tso4);
    EXPECT_EQ(t0.queue_length(), 500U);  // the kernel's, which only the administrator changes
  });
  EXPECT_TRUE(RouteSocket().find_link("t0").value().up);
}

TEST_F(InterfaceRefusalTest, PersistentTunThatIsNotReady_NamesWhatIsMissing) {
  make_persistent_tun("t0", QueueMode::Multi);
  RouteSocket socket;
  const int index = socket.find_link("t0").value().index;
  const auto expect_missing = [](const char* what) {
    without_net_admin([&] {
      EXPECT_THAT(usage_error(test_config()), AllOf(HasSubstr("CAP_NET_ADMIN"), HasSubstr(what)));
    });
  };
  expect_missing("MTU of t0");
  ASSERT_EQ(socket.change_link(index, {.mtu = 65520}), 0);
  expect_missing("bring t0 up");
  ASSERT_EQ(socket.change_link(index, {.up = true}), 0);
  expect_missing("10.77.0.1/24");
}

}  // namespace
}  // namespace ipoverbs::tun
