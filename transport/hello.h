// Hello: what two nodes tell one another in the private data of the connection manager.
//
// It is the same 56 bytes in a request and in its acceptance (the request has room for no more:
// verbs::kConnectPrivateData). Received private data is padded with zeros, hence the length inside.
//
//   offset size
//     0     4   magic "IPoV"
//     4     1   version, 1
//     5     1   length of the hello in bytes, 56
//     6     1   session index
//     7     1   workers of the sender
//     8     8   node id: random, of this start of the sender's process
//    16     4   attempt: how many times the sender has dialled this session so far
//    20     4   capabilities, bits
//    24     4   largest message that the sender receives, bytes
//    28     4   MTU of the sender's interface, bytes of IP packet
//    32     2   credits: messages that the receiver of the hello may send at once
//    34     2   port on which the sender listens; 0 means kDefaultPort
//    36     4   reserved, zero
//    40    16   reserved for authentication, zero
//
// All integers are big-endian. A refusal carries magic, version and one byte of reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "core/ip.h"
#include "core/strong.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

using NodeId = Strong<struct NodeIdTag, std::uint64_t>;

inline constexpr std::uint8_t kWireVersion = 1;
// On which a node listens unless it is told another, and of one that does not tell its own.
inline constexpr std::uint16_t kDefaultPort = 4755;

// Bits of Hello::capabilities: what the sender's TUN delivers, proved by a write at its start.
enum class Capability : std::uint32_t {
  PartialChecksum = 1U << 0,
  Tso4 = 1U << 1,
  Tso6 = 1U << 2,
  TsoEcn = 1U << 3,
  Uso = 1U << 4,
};

// "tso4 uso", for the log; "none" for 0.
[[nodiscard]] std::string describe_capabilities(std::uint32_t capabilities);

struct Hello {
  std::uint8_t session_index = 0;
  std::uint8_t workers = 1;
  NodeId node_id;
  std::uint32_t attempt = 0;
  std::uint32_t capabilities = 0;
  std::uint32_t max_message = 0;
  IpMtu mtu;
  std::uint16_t credits = 0;
  std::uint16_t port = kDefaultPort;

  [[nodiscard]] bool has(Capability c) const {
    return (capabilities & static_cast<std::uint32_t>(c)) != 0;
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class RejectReason : std::uint8_t {
  Crossed = 1,  // both ends dialled and ours is the one to keep
  Stale = 2,    // from before the session that stands
  UnknownPeer,  // no peer is configured with that underlay address and port
  BadHello,     // not a hello, or senseless
  Version,      // another version of the wire format
  Self,         // a node that dials itself
  Busy,         // shutting down, or out of resources: try later
};

inline constexpr std::size_t kHelloSize = 56;
static_assert(kHelloSize <= verbs::kConnectPrivateData);
// Sessions between two nodes: the larger number of workers of the two, at most.
inline constexpr unsigned kMaxWorkers = 64;

[[nodiscard]] std::array<std::byte, kHelloSize> emit(const Hello& hello);
// BadHello or Version if it is none, or if a field is out of its range: workers 1..64, index below
// 64, MTU 68..65535, largest message at least kFrameHeader + 68, at least one credit.
[[nodiscard]] std::expected<Hello, RejectReason> parse_hello(std::span<const std::byte> data);

[[nodiscard]] std::array<std::byte, 8> emit_reject(RejectReason reason);
// In words, for status and the log; understands a peer of any version, and data that is no refusal
// of ours.
[[nodiscard]] std::string describe_reject(std::span<const std::byte> data);
// nullopt in the shape of an error if it is no refusal of ours.
[[nodiscard]] std::expected<RejectReason, bool> parse_reject(std::span<const std::byte> data);

}  // namespace ipoverbs::transport
