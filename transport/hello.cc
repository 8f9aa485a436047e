#include "transport/hello.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/byte_order.h"
#include "transport/frame.h"

namespace ipoverbs::transport {

namespace {

constexpr Be32 kMagic(0x49506f56);  // "IPoV"

struct WireHello {
  Be32 magic;
  std::uint8_t version = kWireVersion;
  std::uint8_t length = kHelloSize;
  std::uint8_t session_index = 0;
  std::uint8_t workers = 0;
  Be64 node_id;
  Be32 attempt;
  Be32 capabilities;
  Be32 max_message;
  Be32 mtu;
  Be16 credits;
  Be16 port;
  std::array<std::byte, 20> reserved{};
};
static_assert(sizeof(WireHello) == kHelloSize);

struct WireReject {
  Be32 magic;
  std::uint8_t version = kWireVersion;
  std::uint8_t reason = 0;
  Be16 reserved;
};
static_assert(sizeof(WireReject) == 8);

bool in_range(const Hello& h) {
  return h.workers >= 1 && h.workers <= kMaxWorkers && h.session_index < kMaxWorkers &&
         h.mtu.value() >= 68 && h.mtu.value() <= kMaxPacket && h.max_message >= kFrameHeader + 68 &&
         h.credits >= 1;
}

constexpr std::array<std::string_view, 7> kReasons{
    "both ends dialled and the other attempt is kept",
    "the attempt is older than the session that stands",
    "the peer has no peer configured with our underlay address",
    "the peer could not read our hello",
    "the peer speaks another version of the wire format",
    "the peer is ourselves",
    "the peer is busy or shutting down",
};
static_assert(kReasons.size() == std::to_underlying(RejectReason::Busy));

}  // namespace

std::array<std::byte, kHelloSize> emit(const Hello& hello) {
  WireHello w;
  w.magic = kMagic;
  w.session_index = hello.session_index;
  w.workers = hello.workers;
  w.node_id = Be64(hello.node_id.value());
  w.attempt = Be32(hello.attempt);
  w.capabilities = Be32(hello.capabilities);
  w.max_message = Be32(hello.max_message);
  w.mtu = Be32(hello.mtu.value());
  w.credits = Be16(hello.credits);
  w.port = Be16(hello.port);
  return std::bit_cast<std::array<std::byte, kHelloSize>>(w);
}

std::expected<Hello, RejectReason> parse_hello(std::span<const std::byte> data) {
  if (data.size() < kHelloSize) return std::unexpected(RejectReason::BadHello);
  const auto w = load<WireHello>(data);
  if (w.magic != kMagic) return std::unexpected(RejectReason::BadHello);
  if (w.version != kWireVersion) return std::unexpected(RejectReason::Version);
  if (w.length != kHelloSize) return std::unexpected(RejectReason::BadHello);
  Hello h;
  h.session_index = w.session_index;
  h.workers = w.workers;
  h.node_id = NodeId(w.node_id.value());
  h.attempt = w.attempt.value();
  h.capabilities = w.capabilities.value();
  h.max_message = w.max_message.value();
  h.mtu = IpMtu(w.mtu.value());
  h.credits = w.credits.value();
  if (w.port.value() != 0) h.port = w.port.value();
  if (!in_range(h)) return std::unexpected(RejectReason::BadHello);
  return h;
}

std::array<std::byte, 8> emit_reject(RejectReason reason) {
  WireReject w;
  w.magic = kMagic;
  w.reason = std::to_underlying(reason);
  return std::bit_cast<std::array<std::byte, 8>>(w);
}

std::string describe_capabilities(std::uint32_t capabilities) {
  constexpr std::array<const char*, 5> kNames{"checksum", "tso4", "tso6", "tso_ecn", "uso"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if ((capabilities >> i & 1) == 0) continue;
    if (!text.empty()) text += ' ';
    text += kNames[i];
  }
  return text.empty() ? "none" : text;
}

std::expected<RejectReason, bool> parse_reject(std::span<const std::byte> data) {
  if (data.size() < sizeof(WireReject)) return std::unexpected(false);
  const auto w = load<WireReject>(data);
  const bool known = w.reason >= 1 && w.reason <= kReasons.size();
  if (w.magic != kMagic || !known) return std::unexpected(false);
  return static_cast<RejectReason>(w.reason);
}

std::string describe_reject(std::span<const std::byte> data) {
  const auto reason = parse_reject(data);
  if (!reason) return "refused, and not by an ipoverbs that we understand";
  if (*reason == RejectReason::Version) {
    return fmt::format("the peer speaks version {} of the wire format, we speak {}",
                       load<WireReject>(data).version, kWireVersion);
  }
  return std::string(kReasons.at(std::to_underlying(*reason) - 1U));
}

}  // namespace ipoverbs::transport
