// Connections end; the other side is a script.

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/verbs/soft/cm_rig.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using test::CmScript;

TEST(CmEnd, DisconnectAsksAndIsAnswered) {
  CmScript script;
  const CommId id = script.establish_active();
  script.machine.disconnect(id, script.now);
  EXPECT_EQ(script.said(), "flush, DREQ");
  const auto dreq = script.last<DisconnectRequestMessage>();
  EXPECT_EQ(dreq.local_comm_id, id);
  EXPECT_EQ(dreq.remote_comm_id, test::kTheirId);
  EXPECT_EQ(dreq.remote_qpn, test::kTheirQp);
  script.machine.disconnect(id, script.now);
  EXPECT_EQ(script.said(), "") << "twice";
  EXPECT_EQ(script.hear(CmScript::disconnected(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "disconnected");
  EXPECT_EQ(script.hear(CmScript::disconnected(id)), CmVerdict::Duplicate);
  EXPECT_EQ(script.machine.state(id), CmState::TimeWait);
  script.sleep(2s);
  EXPECT_EQ(script.machine.state(id), CmState::Closed);
  EXPECT_EQ(script.said(), "");
  script.machine.release(id, script.now);
  EXPECT_EQ(script.machine.size(), 0U);
}

TEST(CmEnd, DisconnectThatNobodyAnswersIsGivenUp) {
  CmScript script;
  const CommId id = script.establish_passive();
  script.machine.disconnect(id, script.now);
  EXPECT_EQ(script.said(), "flush, DREQ");
  const TimePoint start = script.now;
  int requests = 1;
  std::string words;
  while (const auto timer = script.machine.next_timer()) {
    script.now = *timer;
    script.machine.expire(script.now);
    words = script.said();
    if (words != "DREQ") break;
    ++requests;
  }
  EXPECT_EQ(words, "disconnected");
  EXPECT_EQ(requests, 7);
  EXPECT_LT(script.now - start, 15s);
  EXPECT_EQ(script.machine.state(id), CmState::TimeWait);
}

TEST(CmEnd, DisconnectRequestIsAnsweredAndTold) {
  CmScript script;
  const CommId id = script.establish_passive();
  script.transaction = TransactionId(0x77);
  EXPECT_EQ(script.hear(CmScript::disconnect(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "flush, DREP, disconnected");
  const auto drep = script.last<DisconnectReplyMessage>();
  EXPECT_EQ(drep.local_comm_id, id);
  EXPECT_EQ(drep.remote_comm_id, test::kTheirId);
  EXPECT_EQ(script.sent.back().transaction, TransactionId(0x77));
  EXPECT_EQ(script.hear(CmScript::disconnect(id)), CmVerdict::Duplicate) << "the DREP was lost";
  EXPECT_EQ(script.said(), "DREP");
  script.machine.disconnect(id, script.now);
  EXPECT_EQ(script.said(), "");
}

TEST(CmEnd, DisconnectRequestForNobodyIsAnsweredAllTheSame) {
  CmScript script;
  EXPECT_EQ(script.hear(CmScript::disconnect(CommId(0x01020304))), CmVerdict::UnknownConnection);
  EXPECT_EQ(script.said(), "DREP");
  const auto drep = script.last<DisconnectReplyMessage>();
  EXPECT_EQ(drep.local_comm_id, CommId(0x01020304));
  EXPECT_EQ(drep.remote_comm_id, test::kTheirId);
}

TEST(CmEnd, DisconnectRequestThatDoesNotFitIsNothing) {
  CmScript script;
  const CommId id = script.establish_passive();
  DisconnectRequestMessage dreq = CmScript::disconnect(id);
  EXPECT_EQ(script.hear(dreq, test::kElsewhere), CmVerdict::WrongAddress);
  dreq.remote_qpn = QpNumber(0x99);
  EXPECT_EQ(script.hear(dreq), CmVerdict::InvalidField);
  EXPECT_EQ(script.said(), "");
  dreq.local_comm_id = CommId(4);
  EXPECT_EQ(script.hear(dreq), CmVerdict::UnknownConnection);
  EXPECT_EQ(script.said(), "DREP");
  EXPECT_EQ(script.machine.state(id), CmState::Established);
}

TEST(CmEnd, BothDisconnectAtOnce) {
  CmScript script;
  const CommId id = script.establish_active();
  script.machine.disconnect(id, script.now);
  script.said();
  EXPECT_EQ(script.hear(CmScript::disconnect(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "DREP, disconnected");
  EXPECT_EQ(script.hear(CmScript::disconnected(id)), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "");
}

TEST(CmEnd, DisconnectReplyOutOfPlaceIsNothing) {
  CmScript script;
  const CommId id = script.establish_active();
  EXPECT_EQ(script.hear(CmScript::disconnected(id)), CmVerdict::WrongState);
  EXPECT_EQ(script.hear(CmScript::disconnected(CommId(2))), CmVerdict::UnknownConnection);
  script.machine.disconnect(id, script.now);
  script.said();
  EXPECT_EQ(script.hear(CmScript::disconnected(id), test::kElsewhere), CmVerdict::WrongAddress);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.state(id), CmState::DisconnectSent);
}

TEST(CmEnd, PeerThatDisconnectsBeforeTheReadyCameIsAFailure) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  script.accept(id);
  script.said();
  EXPECT_EQ(script.hear(CmScript::disconnect(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "flush, DREP, failed");
  EXPECT_EQ(script.events.back().error, ECONNRESET);
}

TEST(CmEnd, DisconnectRequestBeforeAcceptIsNothing) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  DisconnectRequestMessage dreq = CmScript::disconnect(script.events.back().connection);
  dreq.remote_qpn = QpNumber(0);  // there is no queue pair yet
  EXPECT_EQ(script.hear(dreq), CmVerdict::WrongState);
  EXPECT_EQ(script.said(), "");
}

TEST(CmEnd, RejectEndsAnEstablishedConnection) {
  CmScript script;
  const CommId id = script.establish_passive();
  RejectMessage rej = CmScript::reject(id, CmAnswered::Reply, RejectReason::InvalidCommId);
  rej.local_comm_id = CommId(6);
  EXPECT_EQ(script.hear(rej), CmVerdict::UnknownConnection) << "of another connection";
  rej.local_comm_id = test::kTheirId;
  EXPECT_EQ(script.hear(rej), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "flush, disconnected");
  EXPECT_EQ(script.events.back().reason, RejectReason::InvalidCommId);
}

struct Release {
  const char* what;
  CommId (*reach)(CmScript&);
  const char* said;
  bool remembered;
};

TEST(CmEnd, ReleaseSaysWhatTheStateAsksForAndNothingIsToldAnyMore) {
  for (const Release& release : {
           Release{"request sent", [](CmScript& s) { return s.dial(); }, "REJ", false},
           Release{"request received",
                   [](CmScript& s) {
                     s.hear(CmScript::request());
                     s.said();
                     return s.events.back().connection;
                   },
                   "REJ", true},
           Release{"reply sent",
                   [](CmScript& s) {
                     s.hear(CmScript::request());
                     s.said();
                     s.accept(s.events.back().connection);
                     return s.events.back().connection;
                   },
                   "flush, REJ", true},
           Release{"established", [](CmScript& s) { return s.establish_active(); }, "flush, DREQ",
                   true},
           Release{"disconnect sent",
                   [](CmScript& s) {
                     const CommId id = s.establish_active();
                     s.machine.disconnect(id, s.now);
                     return id;
                   },
                   "", true},
           Release{"time wait",
                   [](CmScript& s) {
                     const CommId id = s.establish_passive();
                     s.hear(CmScript::disconnect(id));
                     return id;
                   },
                   "", true},
       }) {
    CmScript script;
    const CommId id = release.reach(script);
    script.said();
    script.machine.release(id, script.now);
    EXPECT_EQ(script.said(), release.said) << release.what;
    EXPECT_EQ(script.machine.state(id).has_value(), release.remembered) << release.what;
    const std::size_t events = script.events.size();
    for (int i = 0; i < 30; ++i) script.sleep(1s);
    script.said();
    EXPECT_EQ(script.events.size(), events) << release.what;
    EXPECT_EQ(script.machine.size(), 0U) << release.what << ": forgotten in the end";
    script.machine.release(id, script.now);  // harmless
  }
}

TEST(CmEnd, ReleasedConnectionStillDisconnectsThePeer) {
  CmScript script;
  const CommId id = script.establish_active();
  script.machine.release(id, script.now);
  script.said();
  script.sleep(100ms);
  EXPECT_EQ(script.said(), "DREQ") << "the first was lost";
  EXPECT_EQ(script.hear(CmScript::disconnected(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.state(id), CmState::TimeWait);
}

TEST(CmEnd, ReplyAfterTheUserGaveUpIsRejected) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  const auto rep = script.reply();
  script.machine.release(id, script.now);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.hear(rep), CmVerdict::UnknownConnection);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::InvalidCommId);
}

TEST(CmEnd, DisconnectBeforeItIsEstablishedEndsItWithoutAnEvent) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  script.machine.disconnect(id, script.now);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.machine.state(id), CmState::Closed);
  script.machine.disconnect(CommId(1), script.now);  // nobody
  EXPECT_EQ(script.said(), "");
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
