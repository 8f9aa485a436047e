// The rig of a node's tests: two nodes on the in-memory device, their TUNs pairs of sockets, their
// clock the test's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/clock.h"
#include "core/ip.h"
#include "core/log.h"
#include "tests/support/fake_tun.h"
#include "tests/support/loopback_device.h"
#include "tests/support/packets.h"
#include "transport/counters.h"
#include "transport/node.h"
#include "transport/options.h"
#include "transport/status.h"

namespace ipoverbs::transport::test {

using namespace std::chrono_literals;
using support::address;
using support::FakeTun;
using support::ip_packet;
using support::LoopbackNetwork;
using support::to_bytes;

inline constexpr std::uint32_t kAllCapabilities = 0x1f;

// One daemon's worth: underlay 192.0.2.<n>, overlay 10.77.0.<n> and fd77::<n>.
class Host {
 public:
  Host(LoopbackNetwork& network, int n, std::vector<int> peers, unsigned workers = 1,
       support::LoopbackOptions device = {})
      : network_(network), n_(n), device_(std::move(device)), tuns_(workers) {
    options.own = {overlay(n, 4), overlay(n, 6)};
    options.capabilities = kAllCapabilities;
    options.receive_buffers = 32;
    options.slabs = 16;
    // Workers read the clock themselves: what a test waits for is short here.
    options.keepalive = 20ms;
    for (const int peer : peers) {
      PeerOptions p;
      p.name = std::string(1, static_cast<char>('a' + peer - 1));
      p.underlay.endpoint = {underlay(peer), options.port, 0};
      p.prefixes = {overlay(peer, 4), overlay(peer, 6)};
      options.peers.push_back(p);
    }
  }
  static IpAddress underlay(int n) { return address("192.0.2." + std::to_string(n)); }
  static Prefix overlay(int n, int version) {
    return *Prefix::parse((version == 4 ? "10.77.0." : "fd77::") + std::to_string(n));
  }

  void start(std::uint64_t node_id, TimePoint now) {
    std::vector<int> queues;
    for (const FakeTun& tun : tuns_) queues.push_back(tun.queue());
    node_ = std::make_unique<Node>(
        options, queues, [this] { return network_.open(underlay(n_), device_); }, node_id, *log_,
        now);
  }
  void kill() { node_.reset(); }
  [[nodiscard]] bool running() const { return node_ != nullptr; }
  Node& node() { return *node_; }
  FakeTun& tun(std::size_t queue = 0) { return tuns_[queue]; }
  PeerStatus peer(std::size_t i, TimePoint now) { return node_->status(now).peers.at(i); }
  std::uint64_t counter(Counter counter) {
    for (const CounterValue& c : node_->status({}).counters) {
      if (c.name == to_string(counter)) return c.value;
    }
    return ~std::uint64_t{0};
  }

  // Every counter that is not zero, for the message of a failure.
  std::string counters() {
    std::string text;
    for (const CounterValue& c : node_->status({}).counters) {
      if (c.value != 0) text += fmt::format(" {} {}", c.name, c.value);
    }
    return text;
  }

  Options options;

 private:
  LoopbackNetwork& network_;
  int n_;
  support::LoopbackOptions device_;
  std::vector<FakeTun> tuns_;
  std::shared_ptr<Logger> log_ = make_null_logger();
  std::unique_ptr<Node> node_;
};

class NodeTest : public testing::Test {
 protected:
  // Runs both control loops, on a clock that goes as fast as the test, until `done` or until so
  // many turns were too many. Workers run in threads of their own, hence the yield.
  bool run_until(const std::function<bool()>& done, Duration step = 1ms, int turns = 20000) {
    for (int i = 0; i < turns; ++i) {
      for (Host* host : {&a, &b}) {
        if (host->running()) host->node().process(now);
      }
      if (done()) return true;
      now += step;
      support::wait_for_any(
          {a.running() ? a.node().event_fd() : -1, b.running() ? b.node().event_fd() : -1});
    }
    return false;
  }
  bool connected(Host& host, TimePoint when) {
    const PeerStatus peer = host.peer(0, when);
    for (const SessionStatus& s : peer.sessions) {
      // Its worker has credit: it has been told as well.
      if (s.state != "established" || s.send_credits == 0) return false;
    }
    return true;
  }
  bool connect() {
    return run_until([&] { return connected(a, now) && connected(b, now); });
  }
  void start_both() {
    a.start(1, now);
    b.start(2, now);
  }
  // Sends `packet` on `from` until something comes out at `to`.
  std::optional<support::Bytes> cross(Host& from, Host& to, const support::Bytes& packet) {
    from.tun().send(packet);
    std::optional<support::Bytes> got;
    run_until([&] { return (got = to.tun().receive()).has_value(); }, 0ms, 5000);
    return got;
  }

  // A packet may be seen before it is counted: the counter comes to `wanted`.
  testing::AssertionResult counts(Host& host, Counter counter, std::uint64_t wanted) {
    if (run_until([&] { return host.counter(counter) == wanted; }, 0ms)) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << to_string(counter) << " is " << host.counter(counter) << ", not " << wanted;
  }

  LoopbackNetwork network;
  TimePoint now = monotonic_now();
  Host a{network, 1, {2}};
  Host b{network, 2, {1}};
};

inline const support::Bytes kPing = ip_packet("10.77.0.1", "10.77.0.2", to_bytes("ping"));
inline const support::Bytes kPong = ip_packet("10.77.0.2", "10.77.0.1", to_bytes("pong"));

}  // namespace ipoverbs::transport::test
