// The connection manager dials; the other side is a script.

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/verbs/soft/cm_rig.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;
using test::CmScript;

TEST(CmActive, RequestNamesBothSides) {
  CmScript script;
  const CommId id = script.dial();
  EXPECT_EQ(script.said(), "REQ");
  EXPECT_EQ(script.destinations.back(), test::kThere);
  const auto req = script.last<ConnectRequestMessage>();
  EXPECT_EQ(req.local_comm_id, id);
  EXPECT_EQ(req.service_id, ServiceId(0x0000000001060000U | test::kPort));
  EXPECT_EQ(req.local_ca_guid, script.machine.ca_guid());
  EXPECT_EQ(req.local_qpn, test::kOurQp);
  EXPECT_EQ(req.path_mtu, 3);
  EXPECT_EQ(req.retry_count, 6);
  EXPECT_EQ(req.rnr_retry_count, 5);
  EXPECT_TRUE(req.srq);
  EXPECT_EQ(req.primary.local_ack_timeout, 13);
  EXPECT_EQ(req.primary.traffic_class, 8);
  EXPECT_EQ(address_of(req.primary.local_gid), test::kHere);
  EXPECT_EQ(address_of(req.primary.remote_gid), test::kThere);
  EXPECT_EQ(req.partition_key, 0xffff);
  const std::span data(req.private_data);
  const auto header = parse_cma_header(data.first<kCmaHeaderSize>());
  EXPECT_EQ(header->source, test::kHere);
  EXPECT_EQ(header->destination, test::kThere);
  EXPECT_GE(header->source_port, 49152);
  EXPECT_EQ(data[kCmaHeaderSize], std::byte{'h'});
  EXPECT_EQ(data.back(), std::byte{0});
  EXPECT_EQ(script.machine.remote(id), (Endpoint{test::kThere, test::kPort, 0}));
}

TEST(CmActive, ReplyConnectsTheQueuePairThenSaysReadyThenTellsTheUser) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  EXPECT_EQ(script.hear(script.reply()), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "connect, RTU, established");

  const CmQueuePairConnect& qp = script.connects.back();
  EXPECT_EQ(qp.connection, id);
  EXPECT_EQ(qp.qp, test::kOurQp);
  EXPECT_EQ(qp.remote_qp, test::kTheirQp);
  EXPECT_EQ(qp.remote, test::kThere);
  // Each side says what the other is to start with.
  EXPECT_EQ(qp.receive_psn, script.last<ConnectRequestMessage>().starting_psn);
  EXPECT_EQ(qp.send_psn, Psn(0x27d1ae));
  EXPECT_EQ(qp.path_mtu, PathMtu(1024));
  EXPECT_EQ(qp.retry_count, 6);
  EXPECT_EQ(qp.rnr_retry, 3);  // the REP's
  EXPECT_EQ(qp.ack_timeout, 13);
  EXPECT_EQ(qp.traffic_class, 8);

  const auto rtu = script.last<ReadyToUseMessage>();
  EXPECT_EQ(rtu.local_comm_id, id);
  EXPECT_EQ(rtu.remote_comm_id, test::kTheirId);
  EXPECT_EQ(script.sent.back().transaction, script.sent.front().transaction);
  const CmEvent& event = script.events.back();
  EXPECT_EQ(event.private_data.size(), kAcceptPrivateData);
  EXPECT_EQ(event.private_data.front(), std::byte{'w'});
  EXPECT_FALSE(script.machine.next_timer());
}

TEST(CmActive, SilenceMakesItAskAgainLessAndLessOftenAndThenGiveUp) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  const TimePoint start = script.now;
  std::vector<std::int64_t> gaps;
  std::string words;
  while (const auto timer = script.machine.next_timer()) {
    gaps.push_back(
        std::chrono::duration_cast<std::chrono::milliseconds>(*timer - script.now).count());
    script.now = *timer;
    script.machine.expire(script.now);
    words = script.said();
    if (words != "REQ") break;
  }
  EXPECT_EQ(gaps, (std::vector<std::int64_t>{100, 200, 400, 800, 1600, 3200, 4096, 4096, 4096, 4096,
                                             4096, 4096, 4096, 4096, 4096, 4096}));
  EXPECT_EQ(words, "failed, REJ");
  EXPECT_EQ(script.events.back().error, ETIMEDOUT);
  EXPECT_LT(script.now - start, 60s);
  const auto rej = script.last<RejectMessage>();
  EXPECT_EQ(rej.reason, RejectReason::Timeout);
  EXPECT_EQ(load<Be64>(rej.information).value(), script.machine.ca_guid().value());
  EXPECT_EQ(script.machine.state(id), CmState::Closed);
  script.machine.release(id, script.now);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.size(), 0U);
}

TEST(CmActive, ResendsAreIdentical) {
  CmScript script;
  script.dial();
  script.said();
  script.sleep(100ms);
  EXPECT_EQ(script.said(), "REQ");
  EXPECT_EQ(script.sent.at(0), script.sent.at(1));
}

TEST(CmActive, ReceiptAckMakesItWaitAsLongAsThatSays) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Request, 20)), CmVerdict::Taken);
  EXPECT_EQ(script.machine.state(id), CmState::RequestHeld);
  script.sleep(4s);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Request, 20)), CmVerdict::Duplicate);
  script.sleep(1s);  // 4.3 s and what a resend takes: a second MRA has not put it off
  EXPECT_EQ(script.said(), "REQ");
  EXPECT_EQ(script.hear(script.reply()), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "connect, RTU, established");
}

TEST(CmActive, ReceiptAckOfHoursIsCutShort) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  script.hear(CmScript::receipt_ack(id, CmAnswered::Request, 31));
  script.sleep(2min + 1s);
  EXPECT_EQ(script.said(), "REQ");
}

TEST(CmActive, ReceiptAckOfAnythingElseIsNothing) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Reply, 20)), CmVerdict::WrongState);
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Other, 20)), CmVerdict::WrongState);
  EXPECT_EQ(script.hear(CmScript::receipt_ack(CommId(1), CmAnswered::Request, 20)),
            CmVerdict::UnknownConnection);
  EXPECT_EQ(script.hear(CmScript::receipt_ack(id, CmAnswered::Request, 20), test::kElsewhere),
            CmVerdict::WrongAddress);
  EXPECT_EQ(script.machine.state(id), CmState::RequestSent);
}

TEST(CmActive, RejectTellsTheUserWhyAndEndsIt) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  RejectMessage rej = CmScript::reject(id, CmAnswered::Request, RejectReason::ConsumerDefined);
  rej.local_comm_id = CommId(0);  // as the kernel does
  rej.private_data.back() = std::byte{'n'};
  EXPECT_EQ(script.hear(rej), CmVerdict::Taken);
  EXPECT_EQ(script.said(), "rejected");
  EXPECT_EQ(script.events.back().reason, RejectReason::ConsumerDefined);
  EXPECT_EQ(script.events.back().private_data.size(), kRejectPrivateData);
  EXPECT_EQ(script.events.back().private_data.back(), std::byte{'n'});
  EXPECT_FALSE(script.machine.next_timer());
  EXPECT_EQ(script.hear(rej), CmVerdict::WrongState);
  EXPECT_EQ(script.hear(script.reply()), CmVerdict::WrongState);
  EXPECT_EQ(script.said(), "");
}

TEST(CmActive, RejectFromElsewhereIsNothing) {
  CmScript script;
  const CommId id = script.dial();
  script.said();
  const auto rej = CmScript::reject(id, CmAnswered::Request, RejectReason::InvalidServiceId);
  EXPECT_EQ(script.hear(rej, test::kElsewhere), CmVerdict::WrongAddress);
  EXPECT_EQ(script.hear(CmScript::reject(CommId(id.value() + 1), CmAnswered::Request,
                                         RejectReason::InvalidServiceId)),
            CmVerdict::UnknownConnection);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.state(id), CmState::RequestSent);
}

TEST(CmActive, BadRepliesChangeNothing) {
  struct Bad {
    const char* what;
    void (*spoil)(ConnectReplyMessage&);
    CmVerdict verdict;
    const char* said;
  };
  for (const Bad& bad : {
           Bad{"for nobody", [](auto& rep) { rep.remote_comm_id = CommId(9); },
               CmVerdict::UnknownConnection, "REJ"},
           Bad{"queue pair 0", [](auto& rep) { rep.local_qpn = QpNumber(0); },
               CmVerdict::InvalidField, ""},
           Bad{"queue pair 1", [](auto& rep) { rep.local_qpn = QpNumber(1); },
               CmVerdict::InvalidField, ""},
       }) {
    CmScript script;
    const CommId id = script.dial();
    script.said();
    ConnectReplyMessage rep = script.reply();
    bad.spoil(rep);
    EXPECT_EQ(script.hear(rep), bad.verdict) << bad.what;
    EXPECT_EQ(script.said(), bad.said) << bad.what;
    EXPECT_EQ(script.machine.state(id), CmState::RequestSent) << bad.what;
  }
  CmScript script;
  script.dial();
  script.said();
  EXPECT_EQ(script.hear(script.reply(), test::kElsewhere), CmVerdict::WrongAddress);
  EXPECT_EQ(script.said(), "");
}

TEST(CmActive, ReplyForNobodyIsRejectedByItsIds) {
  CmScript script;
  script.dial();
  script.said();
  ConnectReplyMessage rep = script.reply();
  rep.remote_comm_id = CommId(9);
  script.hear(rep);
  EXPECT_EQ(script.said(), "REJ");
  const auto rej = script.last<RejectMessage>();
  EXPECT_EQ(rej.reason, RejectReason::InvalidCommId);
  EXPECT_EQ(rej.answered, CmAnswered::Reply);
  EXPECT_EQ(rej.local_comm_id, CommId(9));
  EXPECT_EQ(rej.remote_comm_id, test::kTheirId);
  EXPECT_EQ(script.sent.back().transaction, script.transaction);
}

TEST(CmActive, SecondReplyMeansThatTheReadyWasLost) {
  CmScript script;
  script.establish_active();
  EXPECT_EQ(script.hear(script.reply()), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "RTU");
  ConnectReplyMessage other = script.reply();
  other.local_comm_id = CommId(77);
  EXPECT_EQ(script.hear(other), CmVerdict::WrongState);
  EXPECT_EQ(script.said(), "");
}

TEST(CmActive, ReplyFromAQueuePairInUseIsStale) {
  CmScript script;
  const CommId old = script.establish_active();
  script.dial();
  script.said();
  ConnectReplyMessage rep = script.reply();
  rep.local_comm_id = CommId(78);
  EXPECT_EQ(script.hear(rep), CmVerdict::Refused);
  EXPECT_EQ(script.said(), "REJ, flush, DREQ, disconnected");
  EXPECT_EQ(script.last<RejectMessage>().reason, RejectReason::StaleConnection);
  EXPECT_EQ(script.events.back().connection, old);
}

TEST(CmActive, ReplyWithAnIdInUseIsNothing) {
  CmScript script;
  script.establish_active();
  const CommId id = script.dial();
  script.said();
  ConnectReplyMessage rep = script.reply();
  rep.local_qpn = QpNumber(0x12);
  EXPECT_EQ(script.hear(rep), CmVerdict::Duplicate);
  EXPECT_EQ(script.said(), "");
  EXPECT_EQ(script.machine.state(id), CmState::RequestSent);
}

TEST(CmActive, TooManyConnectionsIsAnAnswer) {
  CmConfig config;
  config.max_connections = 2;
  CmScript script(config);
  script.dial();
  script.dial();
  EXPECT_FALSE(script.machine.connect({.remote = test::kThere, .port = 1, .path_mtu = PathMtu(256)},
                                      {.number = test::kOurQp}, script.now));
}

TEST(CmActive, IdsAndPortsAndPsnsDifferFromConnectionToConnection) {
  CmScript script;
  const CommId first = script.dial();
  script.machine.release(first, script.now);
  const CommId second = script.dial();
  script.said();
  EXPECT_EQ(second.value(), first.value() + 1);
  const auto a = std::get<ConnectRequestMessage>(script.sent.front().body);
  const auto b = std::get<ConnectRequestMessage>(script.sent.back().body);
  EXPECT_NE(a.starting_psn, b.starting_psn);
  EXPECT_NE(a.primary.flow_label, b.primary.flow_label);
  EXPECT_NE(script.sent.front().transaction, script.sent.back().transaction);
  EXPECT_NE(CmMachine({}, 1).ca_guid(), CmMachine({}, 2).ca_guid());
}

TEST(CmActive, WorksOverIpv6) {
  CmMachine machine({.local = *IpAddress::parse("2001:db8::1")}, 3);
  const TimePoint now{};
  EXPECT_TRUE(machine.connect(
      {.remote = *IpAddress::parse("2001:db8::2"), .port = test::kPort, .path_mtu = PathMtu(4096)},
      {.number = test::kOurQp}, now));
  const auto mad = std::get<CmSend>(*machine.take()).mad;
  const auto req = std::get<ConnectRequestMessage>(parse_cm(mad)->body);
  EXPECT_EQ(address_of(req.primary.local_gid).to_string(), "2001:db8::1");
  EXPECT_EQ(parse_cma_header(std::span(req.private_data).first<kCmaHeaderSize>())
                ->destination.to_string(),
            "2001:db8::2");
  EXPECT_EQ(req.path_mtu, 5);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
