// Two connection managers over a wire that loses, doubles and reorders, on a virtual clock; both
// dial, accept, reject and leave as a seeded generator has it.

#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "tests/verbs/soft/cm_net.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using test::CmNode;
using test::UserConnection;

struct WireFaults {
  double loss = 0;
  double duplication = 0;
  Duration longest_delay = 1ms;
};

class Simulation {
 public:
  Simulation(const WireFaults& wire, std::uint64_t seed)
      : wire_(wire),
        random_(seed),
        nodes_{CmNode(*IpAddress::parse("192.0.2.1"), seed * 2),
               CmNode(*IpAddress::parse("192.0.2.2"), seed * 2 + 1)} {}

  // `on_request` and `on_established` are the users' ways; null: nothing is done.
  using Handler = std::function<void(Simulation&, CmNode&, CommId)>;
  Handler on_request;
  Handler on_established;
  Handler on_end;

  CmNode& node(std::size_t i) { return nodes_.at(i); }
  TimePoint now() const { return now_; }
  Duration random_delay(Duration longest) {
    return Duration(std::uniform_int_distribution<std::int64_t>(0, longest.count())(random_));
  }
  bool chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }
  void at(TimePoint time, std::function<void()> action) {
    actions_.emplace(std::pair(time, sequence_++), std::move(action));
  }
  void after(Duration delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

  // Until nothing is left to happen, or `end` has come.
  void run(TimePoint end = TimePoint::max()) {
    while (true) {
      carry();
      TimePoint next = actions_.empty() ? TimePoint::max() : actions_.begin()->first.first;
      for (CmNode& node : nodes_) {
        next = std::min(next, node.machine().next_timer().value_or(TimePoint::max()));
      }
      if (next == TimePoint::max() || next > end) return;
      now_ = std::max(now_, next);
      for (CmNode& node : nodes_) node.expire(now_);
      while (!actions_.empty() && actions_.begin()->first.first <= now_) {
        const auto action = std::move(actions_.begin()->second);
        actions_.erase(actions_.begin());
        action();
      }
      for (CmNode& node : nodes_) watch(node);
    }
  }

 private:
  void carry() {
    for (CmNode& from : nodes_) {
      for (; !from.wire.empty(); from.wire.pop_front()) {
        const int copies = chance(wire_.loss) ? 0 : chance(wire_.duplication) ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
          after(random_delay(wire_.longest_delay), [this, &from, send = from.wire.front()] {
            for (CmNode& to : nodes_) {
              if (to.address() == send.destination) to.hear(from.address(), send.mad, now_);
            }
          });
        }
      }
    }
  }
  // Calls the handlers for what is new.
  void watch(CmNode& node) {
    std::vector<std::pair<const Handler*, CommId>> calls;
    for (auto& [id, user] : node.users) {
      Seen& seen = seen_[{node.address(), id}];
      if (user.incoming && !std::exchange(seen.request, true)) calls.emplace_back(&on_request, id);
      if (user.established && !std::exchange(seen.established, true)) {
        calls.emplace_back(&on_established, id);
      }
      if (user.over && !std::exchange(seen.over, true)) calls.emplace_back(&on_end, id);
    }
    for (const auto& [handler, id] : calls) {
      if (*handler && node.users.contains(id)) (*handler)(*this, node, id);
    }
  }

  struct Seen {
    bool request = false, established = false, over = false;
  };
  WireFaults wire_;
  std::mt19937_64 random_;
  TimePoint now_{1000s};
  std::uint64_t sequence_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> actions_;
  std::map<std::pair<IpAddress, CommId>, Seen> seen_;
  std::array<CmNode, 2> nodes_;
};

void accept_at_once(Simulation& simulation, CmNode& node, CommId id) {
  node.accept(id, simulation.now());
}

// Both ends of each connection must have been told the same.
void expect_mirrored(CmNode& a, CmNode& b) {
  std::size_t pairs = 0;
  for (const auto& [id, user] : a.users) {
    if (!user.qp) continue;
    for (const auto& [other_id, other] : b.users) {
      if (!other.qp || other.qp->qp != user.qp->remote_qp) continue;
      ++pairs;
      EXPECT_EQ(other.qp->remote_qp, user.qp->qp);
      EXPECT_EQ(other.qp->send_psn, user.qp->receive_psn);
      EXPECT_EQ(other.qp->receive_psn, user.qp->send_psn);
      EXPECT_EQ(other.qp->path_mtu, user.qp->path_mtu);
      EXPECT_NE(other.incoming, user.incoming);
    }
  }
  EXPECT_GT(pairs, 0U);
}

class CmLoss : public testing::TestWithParam<double> {};

TEST_P(CmLoss, EveryPatientDiallerIsConnected) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation simulation({GetParam(), GetParam() / 2, 20ms}, seed);
    simulation.on_request = accept_at_once;
    for (int i = 0; i < 10; ++i) {  // crossing: both dial at the same moment
      for (const std::size_t from : {0U, 1U}) {
        simulation.node(from).dial(simulation.node(1 - from).address(), simulation.now());
      }
    }
    simulation.run();
    std::uint64_t sent = 0;
    for (const std::size_t i : {0U, 1U}) {
      CmNode& node = simulation.node(i);
      EXPECT_EQ(node.users.size(), 20U) << "no connection twice, seed " << seed;
      for (const auto& [id, user] : node.users) {
        EXPECT_TRUE(user.established) << "seed " << seed;
        EXPECT_LT(user.established_at - user.began, 40s);
      }
      sent += node.sent;
    }
    expect_mirrored(simulation.node(0), simulation.node(1));
    EXPECT_LT(sent, GetParam() == 0 ? 61U : 20U * 40) << "no flood, seed " << seed;
  }
}

TEST_P(CmLoss, EverybodyComesAndGoesAndNothingIsLeft) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation simulation({GetParam(), GetParam() / 2, 150ms}, seed);
    const auto leave = [](Simulation& s, CmNode& node, CommId id) {
      s.after(s.random_delay(500ms), [&s, &node, id] {
        if (node.users.contains(id)) node.release(id, s.now());
      });
    };
    simulation.on_request = [&](Simulation& s, CmNode& node, CommId id) {
      s.after(s.random_delay(400ms), [&, id] {
        if (!node.users.contains(id)) return;
        if (s.chance(0.8)) {
          node.accept(id, s.now());
        } else if (s.chance(0.5)) {
          node.reject(id, s.now());
        }
        // Whatever came of it, everybody loses interest some time.
        s.after(60s, [&, id] {
          if (node.users.contains(id)) node.release(id, s.now());
        });
      });
    };
    simulation.on_established = [&](Simulation& s, CmNode& node, CommId id) {
      s.after(s.random_delay(3s), [&, id] {
        if (!node.users.contains(id)) return;
        s.chance(0.5) ? node.disconnect(id, s.now()) : node.release(id, s.now());
      });
    };
    simulation.on_end = leave;
    for (int i = 0; i < 30; ++i) {
      simulation.after(simulation.random_delay(5s), [&] {
        CmNode& from = simulation.node(simulation.chance(0.5) ? 0 : 1);
        const CmNode& to = simulation.node(simulation.chance(0.5) ? 0 : 1);  // itself, too
        const auto id = from.dial(to.address(), simulation.now());
        simulation.after(simulation.chance(0.2) ? simulation.random_delay(300ms) : Duration(90s),
                         [&, id] {
                           if (from.users.contains(*id)) from.release(*id, simulation.now());
                         });
      });
    }
    simulation.run();
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_TRUE(simulation.node(i).users.empty()) << "seed " << seed;
      EXPECT_EQ(simulation.node(i).machine().size(), 0U) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loss, CmLoss, testing::Values(0.0, 0.05, 0.3), [](const auto& loss) {
  return std::to_string(static_cast<int>(loss.param * 100)) + "_percent";
});

TEST(CmSimulation, ConnectsInOneAndAHalfRoundTrips) {
  Simulation simulation({}, 1);
  simulation.on_request = accept_at_once;
  simulation.node(0).dial(simulation.node(1).address(), simulation.now());
  const TimePoint start = simulation.now();
  simulation.run();
  EXPECT_LE(simulation.now() - start, 3ms);
  EXPECT_EQ(simulation.node(0).sent + simulation.node(1).sent, 3U);
}

TEST(CmSimulation, OneLostMessageCostsATenthOfASecond) {
  for (int lost = 0; lost < 3; ++lost) {
    Simulation simulation({}, 1);
    simulation.on_request = accept_at_once;
    int count = 0;
    // The wire is taken care of by hand until the message in question is gone.
    simulation.node(0).dial(simulation.node(1).address(), simulation.now());
    const TimePoint start = simulation.now();
    for (int turn = 0; turn < 3 && count <= lost; ++turn) {
      for (const std::size_t i : {0U, 1U}) {
        auto& wire = simulation.node(i).wire;
        if (!wire.empty() && count++ == lost) wire.pop_front();
      }
      simulation.run(simulation.now() + 2ms);
    }
    simulation.run();
    for (const std::size_t i : {0U, 1U}) {
      ASSERT_EQ(simulation.node(i).users.size(), 1U);
      const UserConnection& user = simulation.node(i).users.begin()->second;
      EXPECT_TRUE(user.established) << lost;
      EXPECT_LT(user.established_at - start, 250ms) << lost;
    }
  }
}

TEST(CmSimulation, PeerThatDiedIsGivenUpAndItsSuccessorConnects) {
  Simulation simulation({1.0, 0, 1ms}, 1);  // nobody hears anybody
  simulation.node(0).dial(simulation.node(1).address(), simulation.now());
  simulation.run();
  const UserConnection& user = simulation.node(0).users.begin()->second;
  EXPECT_EQ(user.end, CmEventKind::Failed);
  EXPECT_LE(simulation.node(0).sent, 17U) << "16 REQ and a REJ";
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
