// What two kernels have said to one another, held against the software device's parsers; README.md
// in captures/ names the files.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/pcap.h"
#include "verbs/soft/cm_message.h"
#include "verbs/soft/cma_header.h"
#include "verbs/soft/gsi.h"
#include "verbs/soft/icrc.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {
namespace {

struct Capture {
  const char* name;
  const char* messages;  // of the connection manager, in order
  int packets;           // RoCEv2, all of them
};

class CaptureTest : public testing::TestWithParam<Capture> {
 protected:
  void SetUp() override {
    frames_ = test::read_pcap(std::string(IPOVERBS_CAPTURES) + GetParam().name + ".pcap");
  }
  // Every RoCEv2 datagram of the capture.
  template <class F>
  void for_each(F&& function) const {
    for (const test::CapturedFrame& frame : frames_) {
      const auto datagram = test::udp_of(frame);
      if (datagram && datagram->destination_port == kRocePort) {
        function(*datagram);
      }
    }
  }
  std::vector<test::CapturedFrame> frames_;
};

TEST_P(CaptureTest, EveryPacketParsesAndItsIcrcVerifies) {
  int packets = 0;
  for_each([&](const test::CapturedDatagram& datagram) {
    ++packets;
    const auto packet = parse(datagram.payload);
    ASSERT_TRUE(packet) << "packet " << packets << ": " << to_string(packet.error());
    const IcrcFlow flow(datagram.source, datagram.source_port, datagram.destination,
                        datagram.destination_port);
    EXPECT_EQ(icrc_matches(flow, datagram.payload, datagram.ip_id), datagram.ip_id);
    EXPECT_EQ(icrc_matches(flow, datagram.payload, 0), datagram.ip_id) << "identification solved";

    std::vector<std::byte> damaged(datagram.payload.begin(), datagram.payload.end());
    damaged[damaged.size() / 2] ^= std::byte{0x10};
    EXPECT_NE(icrc_matches(flow, damaged, datagram.ip_id), datagram.ip_id);
  });
  EXPECT_EQ(packets, GetParam().packets);
}

TEST_P(CaptureTest, EveryMessageIsEmittedAsItWasReceived) {
  std::string messages;
  for_each([&](const test::CapturedDatagram& datagram) {
    const auto packet = parse(datagram.payload);
    ASSERT_TRUE(packet);
    if (packet->bth.qp() != kGeneralServicesQp) {
      return;
    }
    const auto mad = mad_of(*packet);
    ASSERT_TRUE(mad);
    const auto message = parse_cm(*mad);
    ASSERT_TRUE(message) << static_cast<int>(message.error());
    EXPECT_TRUE(std::ranges::equal(emit_cm(*message), *mad)) << name_of(message->body);
    messages += (messages.empty() ? "" : " ") + std::string(name_of(message->body));
  });
  EXPECT_EQ(messages, GetParam().messages);
}

TEST_P(CaptureTest, EveryRequestCarriesTheAddressesOfItsPacket) {
  for_each([&](const test::CapturedDatagram& datagram) {
    const auto mad = mad_of(*parse(datagram.payload));
    const auto message = mad ? parse_cm(*mad) : std::unexpected(CmParseError::BadSize);
    const auto* req = message ? std::get_if<ConnectRequestMessage>(&message->body) : nullptr;
    // The injected one has neither addresses nor a communication ID of a kernel's.
    if (req == nullptr || req->local_comm_id == CommId(0x00c0ffee)) {
      return;
    }
    const std::span data(req->private_data);
    const auto header = parse_cma_header(data.first<kCmaHeaderSize>());
    ASSERT_TRUE(header);
    EXPECT_EQ(header->source, datagram.source);
    EXPECT_EQ(header->destination, datagram.destination);
    EXPECT_EQ(address_of(req->primary.local_gid), datagram.source);
    EXPECT_EQ(address_of(req->primary.remote_gid), datagram.destination);
    std::array<std::byte, kCmaHeaderSize> bytes{};
    emit_cma_header(*header, bytes);
    EXPECT_TRUE(std::ranges::equal(bytes, data.first<kCmaHeaderSize>()));
  });
}

constexpr const char* kConversation = "REQ REP RTU DREQ DREP";
INSTANTIATE_TEST_SUITE_P(
    Captures, CaptureTest,
    testing::Values(
        Capture{"rxe-two-hosts",
                "REQ REP RTU DREQ DREP REQ REP RTU REQ REP RTU DREQ DREQ DREP DREP DREQ DREQ DREP "
                "DREP",
                535},
        Capture{"rxe-rping-pingpong-mckey", kConversation, 119}, Capture{"talk", kConversation, 7},
        Capture{"rej-no-listener", "REQ REJ", 2}, Capture{"rej-consumer", "REQ REJ", 2},
        Capture{"rej-timeout", "REQ REJ", 2}, Capture{"rej-rep", "REQ REP REJ", 3},
        Capture{"rej-stale", "REQ REP RTU REQ REJ DREQ DREP", 9},
        Capture{"mra-req", "REQ REQ MRA REP RTU DREQ DREP", 7},
        Capture{"mra-rep", "REQ REP REP MRA RTU DREQ DREP", 7},
        Capture{"drep-unknown", "DREQ DREP", 2}, Capture{"nak-sequence", kConversation, 9},
        Capture{"nak-invalid", kConversation, 7}, Capture{"nak-access", kConversation, 7},
        Capture{"nak-length", kConversation, 7}, Capture{"nak-rnr", kConversation, 9},
        Capture{"ipv6-talk", kConversation, 7}, Capture{"ipv6-rej-no-listener", "REQ REJ", 2}),
    [](const auto& capture) {
      std::string name = capture.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

// --- What the single captures are about ------------------------------------------------------

std::vector<std::vector<std::byte>> datagrams_of(const std::string& name) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& frame : test::read_pcap(IPOVERBS_CAPTURES + name + ".pcap")) {
    const auto datagram = test::udp_of(frame);
    if (datagram && datagram->destination_port == kRocePort) {
      all.emplace_back(datagram->payload.begin(), datagram->payload.end());
    }
  }
  return all;
}

// The first message of its kind; fails when there is none.
template <class Message>
Message first_of(const std::string& name) {
  for (const auto& datagram : datagrams_of(name)) {
    const auto mad = mad_of(*parse(datagram));
    const auto message = mad ? parse_cm(*mad) : std::unexpected(CmParseError::BadSize);
    if (message && std::holds_alternative<Message>(message->body)) {
      return std::get<Message>(message->body);
    }
  }
  ADD_FAILURE() << name << " holds no such message";
  return {};
}

TEST(Capture, HoldsTheRejectsOfAKernel) {
  const auto no_listener = first_of<RejectMessage>("rej-no-listener");
  EXPECT_EQ(no_listener.reason, RejectReason::InvalidServiceId);
  EXPECT_EQ(no_listener.local_comm_id, CommId(0));
  EXPECT_EQ(first_of<RejectMessage>("ipv6-rej-no-listener").reason, no_listener.reason);

  const auto consumer = first_of<RejectMessage>("rej-consumer");
  EXPECT_EQ(consumer.reason, RejectReason::ConsumerDefined);
  EXPECT_EQ(consumer.answered, CmAnswered::Request);
  EXPECT_EQ(consumer.private_data.back(), std::byte{'n'});

  const auto timeout = first_of<RejectMessage>("rej-timeout");
  const auto guid = first_of<ConnectRequestMessage>("rej-timeout").local_ca_guid;
  EXPECT_EQ(timeout.reason, RejectReason::Timeout);
  EXPECT_EQ(timeout.answered, CmAnswered::Other);
  EXPECT_EQ(timeout.remote_comm_id, CommId(0));
  EXPECT_EQ(timeout.information_length, 8);
  EXPECT_EQ(load<Be64>(timeout.information).value(), guid.value());

  EXPECT_EQ(first_of<RejectMessage>("rej-rep").answered, CmAnswered::Reply);
  EXPECT_EQ(first_of<RejectMessage>("rej-stale").reason, RejectReason::StaleConnection);
}

TEST(Capture, HoldsTheReceiptAcksOfAKernel) {
  EXPECT_EQ(first_of<ReceiptAckMessage>("mra-req").answered, CmAnswered::Request);
  EXPECT_EQ(first_of<ReceiptAckMessage>("mra-rep").answered, CmAnswered::Reply);
  EXPECT_EQ(first_of<ReceiptAckMessage>("mra-req").service_timeout, 24);
}

TEST(Capture, HoldsTheNaksOfAKernel) {
  for (const auto& [name, syndrome] :
       {std::pair{"nak-sequence", nak_syndrome(NakCode::SequenceError)},
        std::pair{"nak-invalid", nak_syndrome(NakCode::InvalidRequest)},
        std::pair{"nak-access", nak_syndrome(NakCode::RemoteAccess)},
        std::pair{"nak-length", nak_syndrome(NakCode::RemoteOperational)},
        std::pair{"nak-rnr", rnr_syndrome(12)}}) {
    int found = 0;
    for (const auto& datagram : datagrams_of(name)) {
      const auto packet = parse(datagram);
      if (packet->opcode() == Opcode::Acknowledge && packet->aeth.syndrome == syndrome) ++found;
    }
    EXPECT_EQ(found, 1) << name;
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
