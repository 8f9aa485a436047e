// What others do to the interface while it is ours, and where it lives.
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/tun/namespace.h"
#include "tests/tun/rig.h"
#include "tun/interface.h"
#include "tun/link_watch.h"

namespace ipoverbs::tun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

class InterfaceLinkTest : public NamespaceTest {
 protected:
  Interface create(const Config& config) { return Interface::create(config, *logger_); }
  // As test_config() asks.
  static void expect_complete(const Interface& interface, RouteSocket& socket) {
    EXPECT_THAT(socket.addresses(interface.index()),
                ElementsAre(prefix("10.77.0.1/24"), prefix("fd77::1/64")));
    EXPECT_THAT(socket.routes(interface.index()),
                IsSupersetOf({prefix("10.78.0.0/16"), prefix("fd78::/64")}));
  }

  std::shared_ptr<Logger> logger_ = make_null_logger();
};

TEST_F(InterfaceLinkTest, WatchHearsOfEachChangeAndLosesNone) {
  LinkWatch watch;
  const Interface t0 = create(test_config());
  std::ignore = watch.read(t0.index());
  set_link_up("t0", false);
  LinkWatch::News news = watch.read(t0.index());
  EXPECT_FALSE(news.lost);
  EXPECT_TRUE(news.went_down);
  EXPECT_EQ(news.up, false);
  set_link_up("t0", true);
  news = watch.read(t0.index());
  EXPECT_FALSE(news.lost);
  EXPECT_FALSE(news.went_down);
  EXPECT_EQ(news.up, true);
  delete_link("t0");
  news = watch.read(t0.index());
  EXPECT_FALSE(news.lost);
  EXPECT_TRUE(news.removed);
}

TEST_F(InterfaceLinkTest, NothingHappened_IsUp) {
  Interface t0 = create(test_config());
  EXPECT_EQ(t0.process_events(), LinkState::Up);
}

TEST_F(InterfaceLinkTest, Down_IsReported) {
  Interface t0 = create(test_config());
  set_link_up("t0", false);
  EXPECT_TRUE(readable(t0.event_fd()));
  EXPECT_EQ(t0.process_events(), LinkState::Down);
  RouteSocket socket;
  EXPECT_THAT(socket.addresses(t0.index()), ElementsAre(prefix("10.77.0.1/24")));
  EXPECT_THAT(socket.routes(t0.index()), IsEmpty());
}

TEST_F(InterfaceLinkTest, DownThenUp_PutsBackAddressesAndRoutes) {
  Interface t0 = create(test_config());
  set_link_up("t0", false);
  EXPECT_EQ(t0.process_events(), LinkState::Down);
  set_link_up("t0", true);
  EXPECT_TRUE(readable(t0.event_fd()));
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  RouteSocket socket;
  expect_complete(t0, socket);
}

TEST_F(InterfaceLinkTest, DownAndUpAtOnce_PutsBackAddressesAndRoutes) {
  Interface t0 = create(test_config());
  for (int i = 0; i < 3; ++i) {
    set_link_up("t0", false);
    set_link_up("t0", true);
  }
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  RouteSocket socket;
  expect_complete(t0, socket);
}

// More than a socket of the default size holds, which `witness` shows.
void flap_until_news_is_lost(LinkWatch& witness, int index) {
  for (int i = 0; i < 300; ++i) {
    set_link_up("t0", false);
    set_link_up("t0", true);
  }
  ASSERT_TRUE(witness.read(index).lost);
}

TEST_F(InterfaceLinkTest, MoreNewsThanTheSocketHolds_StateIsAskedFor) {
  LinkWatch witness;
  Interface t0 = create(test_config());
  flap_until_news_is_lost(witness, t0.index());
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  RouteSocket socket;
  expect_complete(t0, socket);
}

TEST_F(InterfaceLinkTest, AddressThatSomebodyElseAdded_Stays) {
  Interface t0 = create(test_config());
  RouteSocket socket;
  EXPECT_EQ(socket.add_address(t0.index(), prefix("192.0.2.1/32")), 0);
  set_link_up("t0", false);
  set_link_up("t0", true);
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  EXPECT_THAT(socket.addresses(t0.index()),
              IsSupersetOf({prefix("192.0.2.1/32"), prefix("fd77::1/64")}));
}

TEST_F(InterfaceLinkTest, NotBroughtUp_AddressesFollowWhenSomebodyDoes) {
  Config config = test_config();
  config.up = false;
  Interface t0 = create(config);
  RouteSocket socket;
  EXPECT_FALSE(socket.find_link("t0").value().up);
  EXPECT_THAT(socket.addresses(t0.index()), IsEmpty());
  EXPECT_EQ(t0.process_events(), LinkState::Down);
  EXPECT_EQ(write_record(t0.queues().front(), udp4_partial()), EIO);

  set_link_up("t0", true);
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  expect_complete(t0, socket);
  EXPECT_EQ(write_record(t0.queues().front(), udp4_partial()), 0);
}

TEST_F(InterfaceLinkTest, Deleted_IsReported) {
  Interface t0 = create(test_config());
  delete_link("t0");
  EXPECT_EQ(t0.process_events(), LinkState::Removed);
  EXPECT_EQ(t0.process_events(), LinkState::Removed);
  EXPECT_EQ(write_record(t0.queues().front(), udp4_partial()), EBADFD);
  EXPECT_THROW(std::ignore = t0.statistics(), SystemError);
}

TEST_F(InterfaceLinkTest, DeletedAmongTooMuchNews_IsReported) {
  LinkWatch witness;
  Interface t0 = create(test_config());
  flap_until_news_is_lost(witness, t0.index());
  delete_link("t0");
  EXPECT_EQ(t0.process_events(), LinkState::Removed);
}

TEST_F(InterfaceLinkTest, OtherInterfacesAreNotOurs) {
  Config other = test_config();
  other.name = "t1";
  other.addresses = {prefix("10.79.0.1/24")};
  other.routes = {};
  Interface t0 = create(test_config());
  {
    const Interface t1 = create(other);
    set_link_up("t1", false);
  }
  EXPECT_EQ(t0.process_events(), LinkState::Up);
}

TEST_F(InterfaceLinkTest, WithoutCarrier_KeepsAddressesAndRoutes) {
  Interface t0 = create(test_config());
  RouteSocket socket;
  t0.set_carrier(false);
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  expect_complete(t0, socket);
  t0.set_carrier(true);
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  expect_complete(t0, socket);
}

TEST_F(InterfaceLinkTest, InAnotherNamespace_LivesThereAndWorksFromHere) {
  const TestNamespace there;
  Config config = test_config();
  config.netns = there.path();
  Interface t0 = create(config);
  EXPECT_FALSE(RouteSocket().find_link("t0"));
  without_net_admin([&] {  // a thread of its own, in which nothing is left to configure
    there.enter();
    RouteSocket socket;
    ASSERT_TRUE(socket.find_link("t0"));
    expect_complete(t0, socket);
    const UdpSocket sender("10.77.0.1", 1000);
    sender.send_to("10.78.0.1", 100);
  });
  EXPECT_THAT(read_all(t0.queues(), IPPROTO_UDP), SizeIs(1));
  EXPECT_EQ(t0.statistics().tx_packets, 1U);
}

TEST_F(InterfaceLinkTest, InAnotherNamespace_IsPutBackThere) {
  const TestNamespace there;
  Config config = test_config();
  config.netns = there.path();
  Interface t0 = create(config);
  in_thread([&] {
    there.enter();
    set_link_up("t0", false);
    set_link_up("t0", true);
  });
  EXPECT_EQ(t0.process_events(), LinkState::Up);
  in_thread([&] {
    there.enter();
    RouteSocket socket;
    expect_complete(t0, socket);
  });
}

TEST_F(InterfaceLinkTest, InAnotherNamespace_LeavesNothingBehind) {
  const TestNamespace there;
  Config config = test_config();
  config.netns = there.path();
  std::ignore = create(config);
  in_thread([&] {
    there.enter();
    EXPECT_FALSE(RouteSocket().find_link("t0"));
  });
}

TEST_F(InterfaceLinkTest, SameNameInTwoNamespaces_AreTwoInterfaces) {
  const TestNamespace there;
  Config config = test_config();
  const Interface here = create(config);
  config.netns = there.path();
  const Interface other = create(config);
  EXPECT_THAT(usage_error(config), HasSubstr("already belongs to process"));
}

TEST_F(InterfaceLinkTest, NoSuchNamespace_IsNamed) {
  Config config = test_config();
  config.netns = "ipoverbs-nosuch";
  EXPECT_THAT(usage_error(config), HasSubstr("/run/netns/ipoverbs-nosuch does not exist"));
  config.netns = "/proc/self/exe";
  EXPECT_THAT(usage_error(config), HasSubstr("is not a network namespace"));
}

}  // namespace
}  // namespace ipoverbs::tun
