#include "verbs/soft/roce.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "verbs/soft/icrc.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr std::uint8_t kAtomicSize = 28;     // AtomicETH
constexpr std::uint8_t kAtomicAckSize = 8;   // AtomicAckETH
constexpr std::uint8_t kInvalidateSize = 4;  // IETH

constexpr Layout make_layout(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case SendFirst:
    case SendMiddle:
    case SendLast:
    case SendOnly:
    case WriteMiddle:
    case WriteLast:
    case ReadResponseMiddle:
    case CongestionNotification:
      return {.known = true};
    case SendLastImm:
    case SendOnlyImm:
    case WriteLastImm:
      return {.known = true, .immediate = true};
    case WriteFirst:
    case WriteOnly:
    case ReadRequest:
      return {.known = true, .reth = true};
    case WriteOnlyImm:
      return {.known = true, .reth = true, .immediate = true};
    case ReadResponseFirst:
    case ReadResponseLast:
    case ReadResponseOnly:
    case Acknowledge:
      return {.known = true, .aeth = true};
    case AtomicAcknowledge:
      return {.known = true, .aeth = true, .other = kAtomicAckSize};
    case CompareSwap:
    case FetchAdd:
      return {.known = true, .other = kAtomicSize};
    case SendLastInvalidate:
    case SendOnlyInvalidate:
      return {.known = true, .other = kInvalidateSize};
    case UdSendOnly:
      return {.known = true, .deth = true};
    case UdSendOnlyImm:
      return {.known = true, .deth = true, .immediate = true};
  }
  return {};
}

constexpr auto kLayouts = [] {
  std::array<Layout, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) table[i] = make_layout(static_cast<Opcode>(i));
  return table;
}();
static_assert(std::ranges::all_of(kLayouts,
                                  [](const Layout& l) { return l.size() <= kMaxHeaders; }));

template <class Header>
std::size_t take(std::span<const std::byte> from, std::size_t offset, bool there, Header& header) {
  if (!there) return offset;
  header = load<Header>(from, offset);
  return offset + sizeof(Header);
}

template <class Header>
std::size_t put(std::span<std::byte> to, std::size_t offset, bool there, const Header& header) {
  if (!there) return offset;
  store(to, offset, header);
  return offset + sizeof(Header);
}

}  // namespace

Layout layout_of(std::uint8_t opcode) { return kLayouts[opcode]; }

std::expected<Packet, Reject> parse(std::span<const std::byte> datagram) noexcept {
  if (datagram.size() < sizeof(Bth) + kIcrcSize) return std::unexpected(Reject::TooShort);
  if (datagram.size() > kMaxDatagram) return std::unexpected(Reject::TooLong);
  Packet packet;
  packet.bth = load<Bth>(datagram);
  if (packet.bth.version() != 0) return std::unexpected(Reject::BadVersion);
  const Layout& layout = kLayouts[packet.bth.opcode];
  if (!layout.known) return std::unexpected(Reject::BadOpcode);
  if (datagram.size() < layout.size() + kIcrcSize) return std::unexpected(Reject::TooShort);
  const std::size_t padded = datagram.size() - layout.size() - kIcrcSize;
  if (padded % 4 != 0 || packet.bth.pad() > padded) return std::unexpected(Reject::BadPad);
  std::size_t offset = sizeof(Bth);
  offset = take(datagram, offset, layout.deth, packet.deth);
  offset = take(datagram, offset, layout.reth, packet.reth);
  offset = take(datagram, offset, layout.aeth, packet.aeth);
  take(datagram, offset, layout.immediate, packet.immediate);
  packet.payload = datagram.subspan(layout.size(), padded - packet.bth.pad());
  return packet;
}

std::size_t emit_headers(std::span<std::byte> out, const Packet& packet, std::size_t payload) {
  const Layout& layout = kLayouts[packet.bth.opcode];
  Bth bth = packet.bth;
  bth.flags = static_cast<std::uint8_t>((bth.flags & ~0x30U) | pad_of(payload) << 4U);
  std::size_t offset = put(out, 0, true, bth);
  offset = put(out, offset, layout.deth, packet.deth);
  offset = put(out, offset, layout.reth, packet.reth);
  offset = put(out, offset, layout.aeth, packet.aeth);
  offset = put(out, offset, layout.immediate, packet.immediate);
  std::ranges::fill(out.subspan(offset, layout.other), std::byte{0});
  return offset + layout.other;
}

std::size_t emit(std::span<std::byte> out, const Packet& packet, const IcrcFlow& flow,
                 std::uint16_t ip_id) {
  const std::size_t size = datagram_size(kLayouts[packet.bth.opcode], packet.payload.size());
  if (out.size() < size) return 0;
  out = out.first(size);
  // Headers first go aside: emit_headers() wants room for any opcode's.
  std::array<std::byte, kMaxHeaders> headers;
  const std::size_t n = emit_headers(headers, packet, packet.payload.size());
  std::ranges::copy(std::span(headers).first(n), out.begin());
  if (!packet.payload.empty()) {
    std::memcpy(out.subspan(n).data(), packet.payload.data(), packet.payload.size());
  }
  std::ranges::fill(out.subspan(n + packet.payload.size(), pad_of(packet.payload.size())),
                    std::byte{0});
  Icrc icrc(flow, size, ip_id, out.first(n));
  icrc.add(out.subspan(n, size - kIcrcSize - n));
  store(out, size - kIcrcSize, icrc.value());
  return size;
}

std::optional<NakCode> nak_code(std::uint8_t syndrome) {
  const unsigned code = syndrome & 0x1fU;
  if (ack_kind(syndrome) != AckKind::Nak || code > 3) return std::nullopt;
  return static_cast<NakCode>(code);
}

Duration rnr_wait(std::uint8_t timer_code) {
  // Units of 10 us; vol. 1, table 45.
  static constexpr std::array<std::uint32_t, 32> kTens{
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10) * kTens[timer_code & 0x1fU];
}

std::optional<Duration> ack_timeout(std::uint8_t code) {
  if (code == 0) return std::nullopt;
  return Duration(4096) * (std::int64_t{1} << (code & 0x1fU));
}

const char* to_string(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case SendFirst:
      return "SEND first";
    case SendMiddle:
      return "SEND middle";
    case SendLast:
      return "SEND last";
    case SendLastImm:
      return "SEND last with immediate";
    case SendOnly:
      return "SEND only";
    case SendOnlyImm:
      return "SEND only with immediate";
    case WriteFirst:
      return "RDMA WRITE first";
    case WriteMiddle:
      return "RDMA WRITE middle";
    case WriteLast:
      return "RDMA WRITE last";
    case WriteLastImm:
      return "RDMA WRITE last with immediate";
    case WriteOnly:
      return "RDMA WRITE only";
    case WriteOnlyImm:
      return "RDMA WRITE only with immediate";
    case ReadRequest:
      return "RDMA READ request";
    case ReadResponseFirst:
      return "RDMA READ response first";
    case ReadResponseMiddle:
      return "RDMA READ response middle";
    case ReadResponseLast:
      return "RDMA READ response last";
    case ReadResponseOnly:
      return "RDMA READ response only";
    case Acknowledge:
      return "acknowledge";
    case AtomicAcknowledge:
      return "atomic acknowledge";
    case CompareSwap:
      return "compare and swap";
    case FetchAdd:
      return "fetch and add";
    case SendLastInvalidate:
      return "SEND last with invalidate";
    case SendOnlyInvalidate:
      return "SEND only with invalidate";
    case UdSendOnly:
      return "UD SEND only";
    case UdSendOnlyImm:
      return "UD SEND only with immediate";
    case CongestionNotification:
      return "congestion notification";
  }
  return "reserved opcode";
}

const char* to_string(Reject reject) {
  static constexpr std::array kNames{"too_short",       "too_long",      "bad_version",
                                     "bad_opcode",      "bad_pad",       "bad_icrc",
                                     "bad_partition",   "bad_queue_key", "unknown_qp",
                                     "wrong_transport", "wrong_source",  "wrong_state"};
  static_assert(kNames.size() == static_cast<std::size_t>(Reject::kCount));
  return kNames.at(std::to_underlying(reject));
}

}  // namespace ipoverbs::verbs::soft
