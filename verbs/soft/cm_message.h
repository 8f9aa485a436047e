// The connection manager's messages as values (InfiniBand Architecture vol. 1, 12.6; kernel
// include/rdma/ibta_vol1_c12.h).
//
// Theory of operation. A message is a structure; what lies where on the wire is said once for each,
// in cm_message.cc, and read in both directions, so that parse and emit cannot disagree. Field
// widths are the specification's: parse() yields values that fit by construction, emit() asserts
// it. Reserved bits are ignored when parsed and zero when emitted. Queue key, end-to-end context
// and such, which a reliable connection does not use, are kept, so that a message emitted again is
// the one that was received.
//
// Parsing says only that the bytes are a message of this kind. Whether the message makes sense
// (service, path MTU, transport) is for the state machine to say, which has answers for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <variant>

#include "core/strong.h"
#include "verbs/soft/cm_types.h"
#include "verbs/soft/mad.h"

namespace ipoverbs::verbs::soft {

inline constexpr std::size_t kReqPrivateData = 92;
inline constexpr std::size_t kRepPrivateData = 196;
inline constexpr std::size_t kRejPrivateData = 148;
inline constexpr std::size_t kRejInformation = 72;

template <std::size_t N>
using PrivateData = std::array<std::byte, N>;

// The path of a connection as its active side sees it: "local" is the sender of the REQ.
struct CmPath {
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  Gid local_gid;
  Gid remote_gid;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t packet_rate = 0;  // code, 6 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // 4 bits
  bool subnet_local = false;
  std::uint8_t local_ack_timeout = 0;  // 4.096 us * 2^n, 5 bits
  friend bool operator==(const CmPath&, const CmPath&) = default;
};

// REQ, attribute 0x10.
struct ConnectRequestMessage {
  CommId local_comm_id;
  ServiceId service_id;
  CaGuid local_ca_guid;
  std::uint32_t local_q_key = 0;
  QpNumber local_qpn;
  std::uint8_t responder_resources = 0;
  std::uint32_t local_eecn = 0;  // 24 bits
  std::uint8_t initiator_depth = 0;
  std::uint32_t remote_eecn = 0;                // 24 bits
  std::uint8_t remote_cm_response_timeout = 0;  // 4.096 us * 2^n, 5 bits
  TransportService transport = TransportService::ReliableConnection;
  bool end_to_end_flow_control = false;
  Psn starting_psn;                            // what the receiver of this message sends first
  std::uint8_t local_cm_response_timeout = 0;  // 4.096 us * 2^n, 5 bits
  std::uint8_t retry_count = 0;                // 3 bits
  std::uint16_t partition_key = 0;
  std::uint8_t path_mtu = 0;  // 1..5: 256..4096 bytes; 4 bits
  bool rdc_exists = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits, 7 endless
  std::uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  std::uint8_t extended_transport = 0;  // 3 bits
  CmPath primary;
  CmPath alternate;  // absent if its local LID is 0
  PrivateData<kReqPrivateData> private_data{};
  friend bool operator==(const ConnectRequestMessage&, const ConnectRequestMessage&) = default;
};

// MRA, attribute 0x11: "received, the answer will take a while".
struct ReceiptAckMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  CmAnswered answered = CmAnswered::Request;
  std::uint8_t service_timeout = 0;  // 4.096 us * 2^n, 5 bits
  PrivateData<222> private_data{};
  friend bool operator==(const ReceiptAckMessage&, const ReceiptAckMessage&) = default;
};

// REJ, attribute 0x12.
struct RejectMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  CmAnswered answered = CmAnswered::Request;
  std::uint8_t information_length = 0;  // bytes of `information` that count; 7 bits
  RejectReason reason = RejectReason::ConsumerDefined;
  PrivateData<kRejInformation> information{};  // additional reject information, by reason
  PrivateData<kRejPrivateData> private_data{};
  friend bool operator==(const RejectMessage&, const RejectMessage&) = default;
};

// REP, attribute 0x13.
struct ConnectReplyMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  std::uint32_t local_q_key = 0;
  QpNumber local_qpn;
  std::uint32_t local_eecn = 0;  // 24 bits
  Psn starting_psn;              // what the receiver of this message sends first
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t target_ack_delay = 0;   // 4.096 us * 2^n, 5 bits
  std::uint8_t failover_accepted = 0;  // 2 bits
  bool end_to_end_flow_control = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits, 7 endless
  bool srq = false;
  CaGuid local_ca_guid;
  PrivateData<kRepPrivateData> private_data{};
  friend bool operator==(const ConnectReplyMessage&, const ConnectReplyMessage&) = default;
};

// RTU, attribute 0x14.
struct ReadyToUseMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  PrivateData<224> private_data{};
  friend bool operator==(const ReadyToUseMessage&, const ReadyToUseMessage&) = default;
};

// DREQ, attribute 0x15.
struct DisconnectRequestMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  QpNumber remote_qpn;  // the receiver's
  PrivateData<220> private_data{};
  friend bool operator==(const DisconnectRequestMessage&,
                         const DisconnectRequestMessage&) = default;
};

// DREP, attribute 0x16.
struct DisconnectReplyMessage {
  CommId local_comm_id;
  CommId remote_comm_id;
  PrivateData<224> private_data{};
  friend bool operator==(const DisconnectReplyMessage&, const DisconnectReplyMessage&) = default;
};

using CmBody =
    std::variant<ConnectRequestMessage, ReceiptAckMessage, RejectMessage, ConnectReplyMessage,
                 ReadyToUseMessage, DisconnectRequestMessage, DisconnectReplyMessage>;

struct CmMessage {
  TransactionId transaction;
  CmBody body;
  friend bool operator==(const CmMessage&, const CmMessage&) = default;
};

enum class CmParseError : std::uint8_t {
  BadSize,               // not 256 bytes
  OtherClass,            // a MAD for somebody else: base version, class or method differ
  BadClassVersion,       // a connection manager of another version
  UnsupportedAttribute,  // SIDR, LAP, APR: known, and not for reliable connections over Ethernet
  UnknownAttribute,
};

// Any bytes may come in.
[[nodiscard]] std::expected<CmMessage, CmParseError> parse_cm(std::span<const std::byte> mad);

using Mad = std::array<std::byte, kMadSize>;
// Values wider than their fields are a programmer's error.
[[nodiscard]] Mad emit_cm(const CmMessage& message);

// "REQ", "MRA", ... for logs.
[[nodiscard]] const char* name_of(const CmBody& body);

// Marks with ones every bit of a MAD that parse_cm() looks at, for a message of this kind; the rest
// is reserved.
[[nodiscard]] Mad described_bits(const CmBody& kind);

}  // namespace ipoverbs::verbs::soft
