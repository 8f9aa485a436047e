// RoCEv2 packets: the headers as they lie on the wire, and parsing and emitting a whole datagram.
//
// A datagram here is a UDP payload (destination port 4791), from the base transport header to the
// invariant CRC:
//
//   BTH 12 | extension headers by opcode | payload | pad 0..3 | ICRC 4
//
// Everything is in network byte order but the ICRC (verbs/soft/icrc.h). Sources: InfiniBand
// Architecture vol. 1, 9.2 to 9.4 (headers), 9.7.5 (syndromes), annex A17 (RoCEv2); the kernel's
// include/rdma/ib_pack.h and drivers/infiniband/sw/rxe/rxe_hdr.h.
//
// parse() trusts nothing: it checks lengths, version and pad against the opcode, and not the ICRC,
// which needs the IP header (icrc_matches()). Nothing in here allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "core/byte_order.h"
#include "core/clock.h"
#include "verbs/device.h"
#include "verbs/soft/psn.h"

namespace ipoverbs::verbs::soft {

inline constexpr std::uint16_t kRocePort = 4791;  // IANA: roce
inline constexpr std::uint16_t kDefaultPartition = 0xffff;
inline constexpr QpNumber kGeneralServicesQp{1};  // QP1, where management datagrams go
inline constexpr std::uint32_t kQpNumberMask = 0xffffff;
inline constexpr std::uint32_t kQp1Key = 0x80010000;  // its Q_Key
inline constexpr std::size_t kIcrcSize = 4;

// A 24-bit integer in network order, unaligned.
class Be24 {
 public:
  constexpr Be24() = default;
  // The low 24 bits of `host`.
  constexpr explicit Be24(std::uint32_t host)
      : bytes_{static_cast<std::uint8_t>(host >> 16U), static_cast<std::uint8_t>(host >> 8U),
               static_cast<std::uint8_t>(host)} {}
  [[nodiscard]] constexpr std::uint32_t value() const {
    return std::uint32_t{bytes_[0]} << 16U | std::uint32_t{bytes_[1]} << 8U | bytes_[2];
  }
  friend constexpr bool operator==(const Be24&, const Be24&) = default;

 private:
  std::array<std::uint8_t, 3> bytes_{};
};

// Bits 7-5 name the transport (RC 000, UD 011), the rest the operation.
enum class Opcode : std::uint8_t {
  SendFirst = 0x00,
  SendMiddle = 0x01,
  SendLast = 0x02,
  SendLastImm = 0x03,
  SendOnly = 0x04,
  SendOnlyImm = 0x05,
  WriteFirst = 0x06,
  WriteMiddle = 0x07,
  WriteLast = 0x08,
  WriteLastImm = 0x09,
  WriteOnly = 0x0a,
  WriteOnlyImm = 0x0b,
  ReadRequest = 0x0c,
  ReadResponseFirst = 0x0d,
  ReadResponseMiddle = 0x0e,
  ReadResponseLast = 0x0f,
  ReadResponseOnly = 0x10,
  Acknowledge = 0x11,
  AtomicAcknowledge = 0x12,
  CompareSwap = 0x13,
  FetchAdd = 0x14,
  SendLastInvalidate = 0x16,
  SendOnlyInvalidate = 0x17,
  UdSendOnly = 0x64,
  UdSendOnlyImm = 0x65,
  CongestionNotification = 0x81,  // CNP, annex A17.9.3; its payload is kNotificationSize zeros
};
[[nodiscard]] const char* to_string(Opcode opcode);

// Base transport header.
struct Bth {
  std::uint8_t opcode = 0;
  std::uint8_t flags = 0;  // SE 7 | MigReq 6 | PadCnt 5-4 | TVer 3-0
  Be16 partition{kDefaultPartition};
  std::uint8_t congestion = 0;   // FECN 7 | BECN 6 | reserved; not covered by the ICRC
  Be24 destination;              // QP number
  std::uint8_t ack_request = 0;  // A 7 | reserved
  Be24 sequence;

  static constexpr std::uint8_t kSolicited = 0x80;
  static constexpr std::uint8_t kAckRequest = 0x80;
  static constexpr std::uint8_t kFecn = 0x80;
  static constexpr std::uint8_t kBecn = 0x40;
  [[nodiscard]] constexpr bool solicited() const { return (flags & kSolicited) != 0; }
  [[nodiscard]] constexpr bool wants_ack() const { return (ack_request & kAckRequest) != 0; }
  [[nodiscard]] constexpr unsigned pad() const { return flags >> 4U & 3U; }
  [[nodiscard]] constexpr unsigned version() const { return flags & 15U; }
  [[nodiscard]] constexpr Psn psn() const { return Psn(sequence.value()); }
  [[nodiscard]] constexpr QpNumber qp() const { return QpNumber(destination.value()); }
};

// Datagram extended transport header (UD).
struct Deth {
  Be32 queue_key;
  std::uint8_t reserved = 0;
  Be24 source;  // QP number
};

// RDMA extended transport header: only recognised, to refuse what it asks for.
struct Reth {
  Be64 address;
  Be32 remote_key;
  Be32 length;
};

// ACK extended transport header.
struct Aeth {
  std::uint8_t syndrome = 0;
  Be24 msn;  // messages completed by the responder, mod 2^24
};

static_assert(sizeof(Bth) == 12 && alignof(Bth) == 1);
static_assert(sizeof(Deth) == 8 && alignof(Deth) == 1);
static_assert(sizeof(Reth) == 16 && alignof(Reth) == 1);
static_assert(sizeof(Aeth) == 4 && alignof(Aeth) == 1);

inline constexpr std::size_t kImmediateSize = 4;      // ImmDt: opaque, network order
inline constexpr std::size_t kNotificationSize = 16;  // payload of a CNP
inline constexpr std::size_t kMaxPathMtu = 4096;
// BTH and the longest extension headers that any opcode has (AtomicETH, 28).
inline constexpr std::size_t kMaxHeaders = sizeof(Bth) + 28;
inline constexpr std::size_t kMaxDatagram = kMaxHeaders + kMaxPathMtu + kIcrcSize;

// What an AETH says. RNR: the low five bits are a timer code; NAK: the enumerator as it is.
enum class AckKind : std::uint8_t { Ack, RnrNak, Nak, Reserved };
enum class NakCode : std::uint8_t {
  SequenceError = 0,
  InvalidRequest = 1,
  RemoteAccess = 2,
  RemoteOperational = 3,
};
// 0..30: end-to-end credits; 31: none are told, which is what we always send (a shared receive
// queue must) and what we take every credit for: a missing receive shows as RNR.
inline constexpr std::uint8_t kAckWithoutCredits = 0x1f;
[[nodiscard]] constexpr AckKind ack_kind(std::uint8_t syndrome) {
  constexpr std::array kKinds{AckKind::Ack, AckKind::RnrNak, AckKind::Reserved, AckKind::Nak};
  return kKinds[syndrome >> 5U & 3U];
}
[[nodiscard]] constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) {
  return static_cast<std::uint8_t>(0x20U | (timer_code & 0x1fU));
}
[[nodiscard]] constexpr std::uint8_t nak_syndrome(NakCode code) {
  return static_cast<std::uint8_t>(0x60U | static_cast<std::uint8_t>(code));
}
// nullopt for codes without a meaning in RC (invalid RD request, reserved).
[[nodiscard]] std::optional<NakCode> nak_code(std::uint8_t syndrome);
// Low five bits of an RNR NAK's syndrome, or ibv_qp_attr::min_rnr_timer: 0.01 ms .. 655.36 ms.
[[nodiscard]] Duration rnr_wait(std::uint8_t timer_code);
// Local ACK timeout, 0..31: 4.096 us * 2^n; 0 has no end and gives nullopt.
[[nodiscard]] std::optional<Duration> ack_timeout(std::uint8_t code);

// Why a datagram was not handed on. Each has a counter of its name; parse() gives those down to
// BadPad, the device the others.
enum class Reject : std::uint8_t {
  TooShort,    // less than its headers, pad and ICRC
  TooLong,     // more than kMaxDatagram
  BadVersion,  // TVer is not 0
  BadOpcode,   // reserved, or of a transport that nobody here speaks
  BadPad,      // length not a multiple of four, or pad longer than the payload
  BadIcrc,
  BadPartition,  // P_Key
  BadQueueKey,   // Q_Key of a datagram to QP1
  UnknownQp,
  WrongTransport,  // an opcode that the queue pair has no use for: UD, answers to what wasn't asked
  WrongSource,     // not from the address that the queue pair is connected to
  WrongState,      // queue pair not connected yet, or in error
  kCount,
};
[[nodiscard]] const char* to_string(Reject reject);

// A datagram taken apart, or to be put together. The opcode says which of the headers are there;
// the others are zero.
struct Packet {
  Bth bth;
  Deth deth;
  Reth reth;
  Aeth aeth;
  std::array<std::byte, kImmediateSize> immediate{};
  std::span<const std::byte> payload;  // without pad; when parsed, lies in the datagram

  [[nodiscard]] Opcode opcode() const { return static_cast<Opcode>(bth.opcode); }
};

// Which headers follow the BTH.
struct Layout {
  bool known = false;
  bool deth = false;
  bool reth = false;
  bool aeth = false;
  bool immediate = false;
  std::uint8_t other = 0;  // bytes of headers that are only skipped (AtomicETH, IETH, ...)

  [[nodiscard]] constexpr std::size_t size() const {
    return sizeof(Bth) + (deth ? sizeof(Deth) : 0) + (reth ? sizeof(Reth) : 0) +
           (aeth ? sizeof(Aeth) : 0) + (immediate ? kImmediateSize : 0) + other;
  }
};
[[nodiscard]] Layout layout_of(std::uint8_t opcode);

// `datagram` stays alive as long as the packet's payload is used.
[[nodiscard]] std::expected<Packet, Reject> parse(std::span<const std::byte> datagram) noexcept;

// Bytes that pad `payload` to a multiple of four.
[[nodiscard]] constexpr std::size_t pad_of(std::size_t payload) { return -payload & 3U; }
// Bytes of the whole datagram.
[[nodiscard]] constexpr std::size_t datagram_size(const Layout& layout, std::size_t payload) {
  return layout.size() + payload + pad_of(payload) + kIcrcSize;
}

// Writes BTH (its pad count set from `payload`, in bytes) and the extension headers of its opcode.
// `out` has at least kMaxHeaders. Returns how many bytes were written.
std::size_t emit_headers(std::span<std::byte> out, const Packet& packet, std::size_t payload);

class IcrcFlow;
// Writes the whole datagram, ICRC included, as it has to leave with IPv4 identification `ip_id`
// (ignored for IPv6). Returns its size; 0 if `out` is too small (datagram_size()).
std::size_t emit(std::span<std::byte> out, const Packet& packet, const IcrcFlow& flow,
                 std::uint16_t ip_id);

}  // namespace ipoverbs::verbs::soft
