// The connection manager listens; the other side is a script.

#include <cerrno>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/verbs/soft/cm_rig.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using test::CmScript;

TEST(CmPassive, RequestIsTheUsersToAnswer) {
  CmScript script;
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "request");
  const CmEvent& event = script.events.back();
  EXPECT_EQ(event.port, test::kPort);
  EXPECT_EQ(event.remote, (Endpoint{test::kThere, 40000, 0}));
  EXPECT_EQ(event.path_mtu, PathMtu(1024));
  EXPECT_EQ(event.private_data.size(), kConnectPrivateData);
  EXPECT_EQ(event.private_data.front(), std::byte{'h'});
  EXPECT_EQ(script.machine.remote(event.connection), event.remote);
  EXPECT_FALSE(script.machine.next_timer()) << "the user may take its time";
}

TEST(CmPassive, AcceptConnectsTheQueuePairBeforeTheReplyLeaves) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  EXPECT_TRUE(script.accept(id));
  EXPECT_EQ(script.said(), "connect, REP");

  const auto rep = script.last<ConnectReplyMessage>();
  EXPECT_EQ(rep.local_comm_id, id);
  EXPECT_EQ(rep.remote_comm_id, test::kTheirId);
  EXPECT_EQ(rep.local_qpn, test::kOurQp);
  EXPECT_EQ(rep.local_ca_guid, script.machine.ca_guid());
  EXPECT_EQ(rep.rnr_retry_count, 4);
  EXPECT_EQ(rep.private_data.front(), std::byte{'w'});
  EXPECT_EQ(script.sent.back().transaction, script.transaction);

  const CmQueuePairConnect& qp = script.connects.back();
  EXPECT_EQ(qp.remote_qp, test::kTheirQp);
  EXPECT_EQ(qp.receive_psn, rep.starting_psn);
  EXPECT_EQ(qp.send_psn, Psn(0x99f929));
  EXPECT_EQ(qp.path_mtu, PathMtu(1024));
  EXPECT_EQ(qp.retry_count, 7);  // the REQ's
  EXPECT_EQ(qp.rnr_retry, 6);
  EXPECT_EQ(qp.ack_timeout, 12);
  EXPECT_EQ(qp.traffic_class, 16);

  EXPECT_EQ(script.hear(CmScript::ready(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "established");
  EXPECT_TRUE(script.events.back().private_data.empty());
  EXPECT_FALSE(script.machine.next_timer());
  EXPECT_EQ(script.hear(CmScript::ready(id)), CmVerdict::Duplicate);
  EXPECT_FALSE(script.accept(id)) << "twice";
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, DataIsAsGoodAsTheReadyThatWasLost) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  script.machine.data_received(id);
  EXPECT_EQ(script.said(), "") << "before accept() there is no queue pair";
  script.accept(id);
  script.said();
  script.machine.data_received(id);
  EXPECT_EQ(script.said(), "established");
  script.machine.data_received(id);
  EXPECT_EQ(script.hear(CmScript::ready(id)), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, ReadyForSomethingElseIsNothing) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  EXPECT_EQ(script.hear(CmScript::ready(id)), CmVerdict::WrongState) << "before accept()";
  script.accept(id);
  script.said();
  EXPECT_EQ(script.hear(CmScript::ready(CommId(id.value() + 1))), CmVerdict::UnknownConnection);
  ReadyToUseMessage rtu = CmScript::ready(id);
  rtu.local_comm_id = CommId(5);
  EXPECT_EQ(script.hear(rtu), CmVerdict::UnknownConnection);
  EXPECT_EQ(script.hear(CmScript::ready(id), test::kElsewhere), CmVerdict::WrongAddress);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.state(id), CmState::ReplySent);
}

struct Refusal {
  const char* what;
  void (*spoil)(ConnectRequestMessage&);
  RejectReason reason;
};

void readdress(ConnectRequestMessage& req, const IpAddress& from, const IpAddress& to) {
  emit_cma_header({40000, from, to}, std::span(req.private_data).first<kCmaHeaderSize>());
}

TEST(CmPassive, RefusesWhatItCannotOffer) {
  for (const Refusal& refusal : {
           Refusal{"another port", [](auto& req) { req.service_id = service_of_port(1); },
                   RejectReason::InvalidServiceId},
           Refusal{"another port space",
                   [](auto& req) { req.service_id = ServiceId(0x01110000U | test::kPort); },
                   RejectReason::InvalidServiceId},
           Refusal{"an unreliable connection",
                   [](auto& req) { req.transport = TransportService::UnreliableConnection; },
                   RejectReason::InvalidTransportType},
           Refusal{"an extended transport", [](auto& req) { req.extended_transport = 1; },
                   RejectReason::InvalidTransportType},
           Refusal{"path MTU 0", [](auto& req) { req.path_mtu = 0; }, RejectReason::InvalidPathMtu},
           Refusal{"path MTU 6", [](auto& req) { req.path_mtu = 6; }, RejectReason::InvalidPathMtu},
           Refusal{"another version of the IP addresses",
                   [](auto& req) { req.private_data[0] = std::byte{0x10}; },
                   RejectReason::ConsumerDefined},
           Refusal{"from another address than it says",
                   [](auto& req) { readdress(req, test::kElsewhere, test::kHere); },
                   RejectReason::ConsumerDefined},
           Refusal{"for another address",
                   [](auto& req) { readdress(req, test::kThere, test::kElsewhere); },
                   RejectReason::ConsumerDefined},
       }) {
    CmScript script;
    ConnectRequestMessage req = CmScript::request();
    refusal.spoil(req);
    EXPECT_EQ(script.hear(req), CmVerdict::Refused) << refusal.what;
    EXPECT_EQ(script.said(), "REJ") << refusal.what;
    const auto rej = script.last<RejectMessage>();
    EXPECT_EQ(rej.reason, refusal.reason) << refusal.what;
    EXPECT_EQ(rej.answered, CmAnswered::Request);
    EXPECT_EQ(rej.local_comm_id, CommId(0));
    EXPECT_EQ(rej.remote_comm_id, test::kTheirId);
    EXPECT_EQ(script.sent.back().transaction, script.transaction);
    EXPECT_EQ(script.machine.size(), 0U) << "nothing is remembered";
  }
}

TEST(CmPassive, RefusesAPathMtuAboveItsOwn) {
  CmConfig config;
  config.max_path_mtu = PathMtu(1024);
  CmScript script(config);
  ConnectRequestMessage req = CmScript::request();
  req.path_mtu = 4;
  script.hear(req);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::InvalidPathMtu);
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Taken);
}

TEST(CmPassive, StopsListening) {
  CmScript script;
  script.machine.unlisten(test::kPort);
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Refused);
}

TEST(CmPassive, QueuePairsThatCannotBeAreNotAnswered) {
  for (const std::uint32_t qp : {0U, 1U}) {
    CmScript script;
    ConnectRequestMessage req = CmScript::request();
    req.local_qpn = QpNumber(qp);
    EXPECT_EQ(script.hear(req), CmVerdict::InvalidField);
    EXPECT_EQ(script.said(), "");
  }
}

TEST(CmPassive, HoldsOnlySoManyRequests) {
  CmConfig config;
  config.max_pending = 3;
  CmScript script(config);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ConnectRequestMessage req = CmScript::request();
    req.local_comm_id = CommId(i);
    req.local_qpn = QpNumber(100 + i);
    EXPECT_EQ(script.hear(req), i < 3 ? CmVerdict::Taken : CmVerdict::Refused);
  }
  script.said();
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::NoResources);
  EXPECT_EQ(script.machine.size(), 3U);
}

TEST(CmPassive, ForgetsTheOldestEndedConnectionWhenFull) {
  CmConfig config;
  config.max_connections = 3;
  CmScript script(config);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ConnectRequestMessage req = CmScript::request();
    req.local_comm_id = CommId(i);
    req.local_qpn = QpNumber(100 + i);
    EXPECT_EQ(script.hear(req), CmVerdict::Taken) << i;
    script.said();
    script.machine.release(script.events.back().connection, script.now);
    EXPECT_EQ(script.said(), "REJ");
  }
  EXPECT_EQ(script.machine.size(), 3U);
}

TEST(CmPassive, RefusesWhenNothingCanBeForgotten) {
  CmConfig config;
  config.max_connections = 1;
  CmScript script(config);
  script.establish_passive();
  ConnectRequestMessage req = CmScript::request();
  req.local_comm_id = CommId(1);
  req.local_qpn = QpNumber(0x12);
  EXPECT_EQ(script.hear(req), CmVerdict::Refused);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::NoResources);
}

TEST(CmPassive, RepeatedRequestIsToldToWaitWhileTheUserThinks) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "MRA");
  const auto mra = script.last<ReceiptAckMessage>();
  EXPECT_EQ(mra.answered, CmAnswered::Request);
  EXPECT_EQ(mra.local_comm_id, id);
  EXPECT_EQ(mra.remote_comm_id, test::kTheirId);
  EXPECT_GT(timeout_of_code(mra.service_timeout), 4s);
  EXPECT_TRUE(script.accept(id));
  EXPECT_EQ(script.said(), "connect, REP");
}

TEST(CmPassive, RepeatedRequestIsNothingOnceAnswered) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  script.accept(id);
  script.said();
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Duplicate);
  script.hear(CmScript::ready(id));
  EXPECT_EQ(script.said(), "established");
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, RepeatedRequestFromElsewhereIsNothing) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  ConnectRequestMessage req = CmScript::request();
  readdress(req, test::kElsewhere, test::kHere);
  EXPECT_EQ(script.hear(req, test::kElsewhere), CmVerdict::WrongAddress);
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, RejectIsRepeatedWhenItWasLost) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  EXPECT_TRUE(script.machine.reject(id, test::bytes_of("no"), script.now));
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::ConsumerDefined);
  EXPECT_EQ(script.last<RejectMessage>().private_data.front(), std::byte{'n'});
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.sent.at(0), script.sent.at(1));
  EXPECT_FALSE(script.machine.reject(id, {}, script.now)) << "twice";
  EXPECT_FALSE(script.accept(id));
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, RequestOfAConnectionThatIsOverIsStale) {
  CmScript script;
  const CommId id = script.establish_passive();
  script.hear(CmScript::disconnect(id));
  EXPECT_EQ(script.said(), "flush, DREP, disconnected");
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::StaleConnection);
  script.sleep(3s);
  EXPECT_EQ(script.hear(CmScript::request()), CmVerdict::Taken) << "after the time wait";
}

TEST(CmPassive, NewRequestFromAQueuePairInUseEndsTheOldConnection) {
  CmScript script;
  const CommId old = script.establish_passive();
  ConnectRequestMessage req = CmScript::request();
  req.local_comm_id = CommId(1);
  EXPECT_EQ(script.hear(req), CmVerdict::Refused);
  EXPECT_EQ(script.said(), "REJ, flush, DREQ, disconnected");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::StaleConnection);
  EXPECT_EQ(script.last<RejectMessage>().remote_comm_id, CommId(1));
  EXPECT_EQ(script.last<DisconnectRequestMessage>().local_comm_id, old);
  EXPECT_EQ(script.last<DisconnectRequestMessage>().remote_qpn, test::kTheirQp);
  req.local_comm_id = CommId(2);
  EXPECT_EQ(script.hear(req), CmVerdict::Taken) << "the number is free now";
}

TEST(CmPassive, ForeignRequestDoesNotEndAConnection) {
  CmScript script;
  const CommId old = script.establish_passive();
  ConnectRequestMessage req = CmScript::request();
  req.local_comm_id = CommId(1);
  readdress(req, test::kElsewhere, test::kHere);
  EXPECT_EQ(script.hear(req, test::kElsewhere), CmVerdict::Refused);
  EXPECT_EQ(script.said(), "REJ");
  EXPECT_EQ(script.machine.state(old), CmState::Established);
}

TEST(CmPassive, ReplyIsSentAgainAndGivenUp) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  script.accept(id);
  script.said();
  int replies = 1;
  std::string words;
  while (const auto timer = script.machine.next_timer()) {
    script.now = *timer;
    script.machine.expire(script.now);
    words = script.said();
    if (words != "REP") break;
    ++replies;
  }
  EXPECT_EQ(replies, 16);
  EXPECT_EQ(words, "flush, REJ, failed");
  EXPECT_EQ(script.events.back().error, ETIMEDOUT);
}

TEST(CmPassive, ReceiptAckOfTheReplyMakesItWait) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  script.accept(id);
  script.said();
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Reply, 20)), CmVerdict::Taken);
  EXPECT_EQ(script.machine.state(id), CmState::ReplyHeld);
  script.sleep(4s);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Reply, 20)), CmVerdict::Duplicate);
  script.sleep(1s);
  EXPECT_EQ(script.said(), "REP");
  EXPECT_EQ(script.hear(CmScript::ready(id)), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "established");
}

TEST(CmPassive, PeerThatGivesUpBeforeTheAnswerIsToldOf) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  const CommId id = script.events.back().connection;
  EXPECT_EQ(script.hear(CmScript::give_up()), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "failed");
  EXPECT_EQ(script.events.back().reason, RejectReason::Timeout);
  EXPECT_FALSE(script.accept(id));
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, PeerThatGivesUpOnTheReplyIsToldOf) {
  for (const RejectMessage& rej :
       {CmScript::give_up(),
        CmScript::reject(CommId(0), CmAnswered::Reply, RejectReason::ConsumerDefined)}) {
    CmScript script;
    script.hear(CmScript::request());
    script.said();
    const CommId id = script.events.back().connection;
    script.accept(id);
    script.said();
    RejectMessage addressed = rej;
    if (rej.reason != RejectReason::Timeout) addressed.remote_comm_id = id;
    EXPECT_EQ(script.hear(addressed), CmVerdict::Taken);
    EXPECT_EQ(script.said(), "flush, failed");
    EXPECT_EQ(script.machine.state(id), CmState::TimeWait);
  }
}

TEST(CmPassive, SomebodyElseCannotGiveUp) {
  CmScript script;
  script.hear(CmScript::request());
  script.said();
  EXPECT_EQ(script.hear(CmScript::give_up(), test::kElsewhere), CmVerdict::WrongAddress);
  RejectMessage other = CmScript::give_up();
  other.local_comm_id = CommId(3);
  EXPECT_EQ(script.hear(other), CmVerdict::UnknownConnection);
  EXPECT_EQ(script.said(), "");
}

TEST(CmPassive, EveryVerdictHasAName) {
  std::set<std::string> names;
  for (std::uint8_t i = 0; i < std::to_underlying(CmVerdict::kCount); ++i) {
    names.insert(to_string(static_cast<CmVerdict>(i)));
  }
  EXPECT_EQ(names.size(), std::size_t{std::to_underlying(CmVerdict::kCount)});
}

TEST(CmPassive, OtherMessagesAreCounted) {
  CmScript script;
  Mad sidr = emit_cm({TransactionId(1), ReadyToUseMessage{}});
  sidr[17] = std::byte{0x17};
  EXPECT_EQ(script.machine.receive(test::kThere, sidr, script.now), CmVerdict::Unsupported);
  EXPECT_EQ(script.machine.receive(test::kThere, {}, script.now), CmVerdict::Malformed);
  EXPECT_EQ(script.said(), "");
  const CmCounters& counters = script.machine.counters();
  EXPECT_EQ(counters.at(std::to_underlying(CmVerdict::Unsupported)), 1U);
  EXPECT_EQ(counters.at(std::to_underlying(CmVerdict::Malformed)), 1U);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
