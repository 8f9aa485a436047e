// Whole daemons in one process, over devices in memory, with TUN interfaces in namespaces.
#include "daemon/service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "daemon/control_socket.h"
#include "tests/daemon/complaint.h"
#include "tests/daemon/temporary_folder.h"
#include "tests/support/loopback_device.h"
#include "tests/tun/namespace.h"

namespace ipoverbs::daemon {
namespace {

using nlohmann::json;
using std::filesystem::exists;

UpOptions options_of(int self, int other, const std::string& netns, const std::string& control) {
  const std::vector<std::string> args{
      "--underlay",  fmt::format("192.0.2.{}", self),
      "--address",   fmt::format("10.77.0.{}/24", self),
      "--peer",      fmt::format("192.0.2.{} 10.77.0.{}", other, other),
      "--tun",       "ipovtest0",
      "--tun-netns", netns,
      "--control",   control};
  return build_up({}, up_grammar().parse_command_line(args), [](const std::string&) { return 0U; })
      .options;
}

// A daemon on a thread of its own.
class Daemon {
 public:
  Daemon(support::LoopbackNetwork& network, const UpOptions& options)
      : control_(options.control),
        logger_(make_null_logger()),
        service_(
            std::in_place, options,
            [&network](const verbs::DeviceRequest& request, Logger&) {
              return network.open(request.underlay.address);
            },
            static_cast<std::uint64_t>(options.transport.own.at(0).address().bytes()[3]), *logger_),
        thread_([this] { service_->run(); }) {}
  ~Daemon() {
    if (service_) service_->stop();
    join();
  }

  // Waits for the end that a signal brings.
  void join() {
    if (thread_.joinable()) thread_.join();
    service_.reset();
  }

  [[nodiscard]] json status() const {
    return json::parse(
        parse_answer(ask_daemon(control_, format_request(Request::StatusJson))).value());
  }

  [[nodiscard]] bool connected() const {
    return status().at("peers").at(0).at("state") == "connected";
  }

 private:
  std::string control_;
  std::shared_ptr<Logger> logger_;
  std::optional<Service> service_;
  std::thread thread_;
};

// Repeats `condition` until it holds, for ten seconds at most.
template <class Condition>
bool eventually(Condition condition) {
  const TimePoint deadline = monotonic_now() + std::chrono::seconds(10);
  while (!condition()) {
    if (monotonic_now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

sockaddr_in socket_address(const char* address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(9000);
  ::inet_pton(AF_INET, address, &in.sin_addr);
  return in;
}

Fd udp_socket(const tun::TestNamespace& netns) {
  Fd fd;
  tun::in_thread([&] {
    netns.enter();
    fd = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  });
  const timeval limit{10, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

std::uint64_t sum_of(const json& counters, const std::string& start) {
  std::uint64_t sum = 0;
  for (const auto& [name, value] : counters.items()) {
    if (name.starts_with(start)) sum += value.get<std::uint64_t>();
  }
  return sum;
}

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = tun::why_no_tun(); !why.empty()) GTEST_SKIP() << why;
    netns_a_.emplace();
    netns_b_.emplace();
    options_a_ = options_of(1, 2, netns_a_->path(), folder_ / "a.sock");
    options_b_ = options_of(2, 1, netns_b_->path(), folder_ / "b.sock");
  }

  // What the set-up of a daemon that is not expected to start says.
  std::string complaint(const UpOptions& options) {
    return complaint_of([&] { const Daemon daemon(network_, options); });
  }

  TemporaryFolder folder_;
  support::LoopbackNetwork network_;
  std::optional<tun::TestNamespace> netns_a_;
  std::optional<tun::TestNamespace> netns_b_;
  UpOptions options_a_;
  UpOptions options_b_;
};

TEST_F(ServiceTest, CountsOneWayTrafficInOneDirection) {
  const Daemon a(network_, options_a_);
  const Daemon b(network_, options_b_);
  ASSERT_TRUE(eventually([&] { return a.connected() && b.connected(); }));

  constexpr std::uint64_t kPackets = 100;
  constexpr std::uint64_t kBytes = kPackets * 1028;  // 1,000 of payload, 8 of UDP, 20 of IPv4
  const Fd sender = udp_socket(*netns_a_);
  const Fd receiver = udp_socket(*netns_b_);
  const sockaddr_in to = socket_address("10.77.0.2");
  const auto* generic = reinterpret_cast<const sockaddr*>(&to);
  ASSERT_EQ(::bind(receiver.get(), generic, sizeof to), 0);
  const std::string payload(1000, 'x');
  std::string received(2000, '\0');
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    ASSERT_EQ(::sendto(sender.get(), payload.data(), payload.size(), 0, generic, sizeof to), 1000);
    ASSERT_EQ(::recv(receiver.get(), received.data(), received.size(), 0), 1000);
  }

  // A packet is counted when it is posted, which its receiver may be quicker than.
  ASSERT_TRUE(eventually([&] {
    return a.status().at("peers").at(0).at("tx_packets") == kPackets &&
           b.status().at("counters").at("tun_tx_packets") == kPackets;
  }));
  const json at_a = a.status();
  const json& to_b = at_a.at("peers").at(0);
  EXPECT_EQ(to_b.at("tx_packets"), kPackets);
  EXPECT_EQ(to_b.at("tx_bytes"), kBytes);
  EXPECT_EQ(to_b.at("rx_packets"), 0);
  const json& counters = at_a.at("counters");
  EXPECT_EQ(counters.at("peer_tx_packets"), kPackets);
  EXPECT_EQ(counters.at("peer_tx_bytes"), kBytes);
  EXPECT_EQ(counters.at("tun_tx_packets"), 0);
  EXPECT_EQ(counters.at("tun_rx_packets"),
            counters.at("peer_tx_packets").get<std::uint64_t>() + sum_of(counters, "tx_drop_"));

  const json at_b = b.status();
  const json& from_a = at_b.at("peers").at(0);
  EXPECT_EQ(from_a.at("rx_packets"), kPackets);
  EXPECT_EQ(from_a.at("rx_bytes"), kBytes);
  EXPECT_EQ(from_a.at("tx_packets"), 0);
  EXPECT_EQ(at_b.at("counters").at("tun_tx_packets"), kPackets);
  EXPECT_EQ(at_b.at("tun").at("kernel").at("rx_packets"), kPackets);
}

TEST_F(ServiceTest, ASignalEndsItAndNothingStays) {
  Daemon a(network_, options_a_);
  ASSERT_TRUE(eventually([&] { return a.status().at("tun").at("state") == "up"; }));
  EXPECT_TRUE(exists(options_a_.control));
  ::raise(SIGTERM);
  a.join();
  EXPECT_FALSE(exists(options_a_.control));
  EXPECT_EQ(complaint(options_a_), "no complaint");  // control socket, interface and port are free
}

TEST_F(ServiceTest, ASecondDaemonIsRefused) {
  const Daemon a(network_, options_a_);
  EXPECT_EQ(complaint(options_a_),
            fmt::format("--control: '{}': another ipoverbs daemon answers there; choose another "
                        "--tun or --control",
                        options_a_.control));
  UpOptions same_interface = options_b_;
  same_interface.tun.netns = options_a_.tun.netns;
  EXPECT_NE(complaint(same_interface).find("ipovtest0"), std::string::npos);
  EXPECT_FALSE(exists(same_interface.control));
  EXPECT_EQ(a.status().at("tun").at("state"), "up");
}

TEST_F(ServiceTest, WhatCannotBeHadLeavesNothing) {
  UpOptions no_namespace = options_a_;
  no_namespace.tun.netns = "no-such-namespace";
  EXPECT_NE(complaint(no_namespace).find("no-such-namespace"), std::string::npos);
  EXPECT_FALSE(exists(no_namespace.control));

  const auto no_device = [](const verbs::DeviceRequest&,
                            Logger&) -> std::unique_ptr<verbs::Device> {
    throw UsageError("no device");
  };
  EXPECT_THROW(Service(options_a_, no_device, 1, *make_null_logger()), UsageError);
  EXPECT_FALSE(exists(options_a_.control));
  EXPECT_EQ(complaint(options_a_), "no complaint");
}

TEST_F(ServiceTest, WithoutOffloadsNoneAreAskedForOrOffered) {
  options_a_.offloads = false;
  const Daemon a(network_, options_a_);
  const json tun = a.status().at("tun");
  for (const char* direction : {"read_offloads", "write_offloads"}) {
    for (const auto& [name, on] : tun.at(direction).items()) EXPECT_EQ(on, false) << name;
  }
}

}  // namespace
}  // namespace ipoverbs::daemon
