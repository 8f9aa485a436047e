#include "transport/session_machine.h"

#include <gtest/gtest.h>

namespace ipoverbs::transport {
namespace {

using namespace std::chrono_literals;
using Action = SessionMachine::Action;

constexpr NodeId kLow(1);
constexpr NodeId kHigh(2);

Hello hello(NodeId node, std::uint32_t attempt) {
  Hello h;
  h.node_id = node;
  h.attempt = attempt;
  return h;
}

class Machine : public testing::Test {
 protected:
  SessionMachine make(NodeId own) { return {own, {1s, 4s, 100ms, 1s}, now}; }
  TimePoint now{};
};

TEST_F(Machine, DialsAtOnceAndCounts) {
  SessionMachine m = make(kLow);
  EXPECT_EQ(m.tick(now), Action::Dial);
  EXPECT_EQ(m.attempt(), 1U);
  EXPECT_EQ(m.state(), SessionState::Dialling);
  EXPECT_EQ(m.tick(now), Action::None);
}

TEST_F(Machine, GivesAnAttemptUpAfterItsTime) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  EXPECT_EQ(m.tick(now + 999ms), Action::None);
  EXPECT_EQ(m.tick(now + 1s), Action::Drop);
  EXPECT_EQ(m.state(), SessionState::Backoff);
  EXPECT_EQ(m.last_error(), "no answer in time");
}

TEST_F(Machine, BacksOffTwiceAsLongEachTimeUpToTheLimit) {
  SessionMachine m = make(kLow);
  for (const Duration wait : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    ASSERT_EQ(m.tick(now), Action::Dial);
    m.on_failed("refused", now);
    EXPECT_EQ(m.tick(now + wait - 1ns), Action::None);
    now += wait;
  }
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 0), now);
  m.on_failed("gone", now);
  EXPECT_EQ(m.tick(now + 100ms), Action::Dial);
}

TEST_F(Machine, EstablishedHasNoTimer) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 0), now);
  EXPECT_EQ(m.tick(now + 1000h), Action::None);
  EXPECT_EQ(m.state(), SessionState::Established);
  EXPECT_EQ(m.established_count(), 1U);
}

TEST_F(Machine, TheLowerNodeRefusesARequestThatCrosses) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  EXPECT_EQ(m.on_request(hello(kHigh, 1), now), RejectReason::Crossed);
  EXPECT_EQ(m.state(), SessionState::Dialling);
}

TEST_F(Machine, TheHigherNodeAcceptsARequestThatCrosses) {
  SessionMachine m = make(kHigh);
  ASSERT_EQ(m.tick(now), Action::Dial);
  EXPECT_EQ(m.on_request(hello(kLow, 1), now), std::nullopt);
  EXPECT_EQ(m.state(), SessionState::Accepting);
}

TEST_F(Machine, ARequestInBackoffIsAcceptedFromEither) {
  for (const auto& [own, peer] : {std::pair{kLow, kHigh}, std::pair{kHigh, kLow}}) {
    SessionMachine m = make(own);
    ASSERT_EQ(m.tick(now), Action::Dial);
    m.on_failed("refused", now);
    EXPECT_EQ(m.on_request(hello(peer, 1), now), std::nullopt);
  }
}

TEST_F(Machine, AnAcceptedConnectionThatNeverComesUpIsDropped) {
  SessionMachine m = make(kHigh);
  EXPECT_EQ(m.on_request(hello(kLow, 1), now), std::nullopt);
  EXPECT_EQ(m.tick(now + 1s), Action::Drop);
  EXPECT_EQ(m.state(), SessionState::Backoff);
}

TEST_F(Machine, WaitsTwiceAsLongWithEachAttemptUpToTheLimit) {
  SessionMachine m = make(kLow);
  for (const Duration patience : {1s, 2s, 4s, 4s}) {
    ASSERT_EQ(m.tick(now), Action::Dial);
    EXPECT_EQ(m.tick(now + patience - 1ns), Action::None);
    EXPECT_EQ(m.tick(now + patience), Action::Drop);
    now += patience + 1s;
  }
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 0), now);
  m.on_failed("gone", now);
  now += 100ms;
  ASSERT_EQ(m.tick(now), Action::Dial);
  EXPECT_EQ(m.tick(now + 1s), Action::Drop);
}

// The higher node accepted our dialling and told its own count, 1: its request number 1 was on its
// way.
TEST_F(Machine, ARequestFromBeforeTheSessionIsStale) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 1), now);
  EXPECT_EQ(m.on_request(hello(kHigh, 1), now), RejectReason::Stale);
  EXPECT_EQ(m.on_request(hello(kHigh, 0), now), RejectReason::Stale);
  EXPECT_EQ(m.on_request(hello(kHigh, 0xffffffff), now), RejectReason::Stale);
  EXPECT_EQ(m.state(), SessionState::Established);
}

TEST_F(Machine, ARequestFromAfterTheSessionReplacesIt) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 1), now);
  EXPECT_EQ(m.on_request(hello(kHigh, 2), now), std::nullopt);
  EXPECT_EQ(m.state(), SessionState::Accepting);
}

TEST_F(Machine, ARestartedPeerReplacesItsSession) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_established(hello(kHigh, 7), now);
  EXPECT_EQ(m.on_request(hello(NodeId(99), 1), now), std::nullopt);
}

TEST_F(Machine, ADuplicateRequestDoesNotDisturbTheAccepting) {
  SessionMachine m = make(kHigh);
  EXPECT_EQ(m.on_request(hello(kLow, 1), now), std::nullopt);
  EXPECT_EQ(m.on_request(hello(kLow, 1), now), RejectReason::Stale);
  EXPECT_EQ(m.on_request(hello(kLow, 2), now), std::nullopt);
}

TEST_F(Machine, ANodeThatDialsItselfIsRefused) {
  SessionMachine m = make(kLow);
  EXPECT_EQ(m.on_request(hello(kLow, 1), now), RejectReason::Self);
}

TEST_F(Machine, AFailureInBackoffChangesNothing) {
  SessionMachine m = make(kLow);
  ASSERT_EQ(m.tick(now), Action::Dial);
  m.on_failed("first", now);
  m.on_failed("second", now + 50ms);
  EXPECT_EQ(m.last_error(), "first");
  EXPECT_EQ(m.tick(now + 100ms), Action::Dial);
}

// Both dial, requests cross, at every order of the two arrivals: one connection, and it is the
// lower's.
TEST_F(Machine, WhoeverIsFirstTheLowerNodesConnectionIsKept) {
  for (const bool low_hears_first : {true, false}) {
    SessionMachine low = make(kLow);
    SessionMachine high = make(kHigh);
    ASSERT_EQ(low.tick(now), Action::Dial);
    ASSERT_EQ(high.tick(now), Action::Dial);
    if (low_hears_first) {
      EXPECT_EQ(low.on_request(hello(kHigh, high.attempt()), now), RejectReason::Crossed);
    }
    EXPECT_EQ(high.on_request(hello(kLow, low.attempt()), now), std::nullopt);
    low.on_established(hello(kHigh, high.attempt()), now);
    if (!low_hears_first) {
      EXPECT_EQ(low.on_request(hello(kHigh, 1), now), RejectReason::Stale);
    }
    high.on_established(hello(kLow, low.attempt()), now);
    EXPECT_EQ(low.state(), SessionState::Established);
    EXPECT_EQ(high.state(), SessionState::Established);
  }
}

}  // namespace
}  // namespace ipoverbs::transport
