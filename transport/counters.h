// Counters: one list of names for everything that a worker counts.
//
// Every packet read from the TUN, every further copy of it (multicast_copies) and every fragment of
// it but the first (tx_fragments) ends in exactly one of: peer_tx_packets, or one tx_drop_*; or it
// waits in a queue of a session. Every packet that
// comes in a frame from a peer ends in exactly one of: tun_tx_packets, or one rx_drop_*. Directions
// are seen from this node: tun_rx is what it read from the TUN, peer_tx what it sent to peers.
//
// A counter has one writer, its worker, and any number of readers: relaxed loads and stores serve.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/gauge.h"

namespace ipoverbs::transport {

enum class Counter : std::uint8_t {
  TunRxPackets,
  TunRxBytes,
  PeerTxPackets,
  PeerTxBytes,
  PeerTxMessages,   // with packets; grants are apart
  PeerTxDoorbells,  // calls of ibv_post_send
  PeerTxGrants,     // messages that carry no packet: grants and keepalives
  PeerRxMessages,
  PeerRxGrants,
  PeerRxPackets,
  PeerRxBytes,
  TunTxPackets,
  TunTxBytes,
  MulticastCopies,  // of packets for more than one peer, beyond the first
  TxFragments,      // of packets larger than the peer's MTU, beyond the first

  TxDropNoRoute,
  TxDropOwnAddress,  // for our own prefix: it would loop
  TxDropMulticast,   // multicast, or broadcast, and neither is carried
  TxDropPeerDown,    // no session to the peer
  // The peer grants no credit or acknowledges nothing, and its queue is full, or memory is.
  TxDropQueueFull,
  TxDropTooBig,           // larger than the peer's MTU, and not to be fragmented
  TxDropMalformed,        // not an IP packet, or its lengths disagree
  TxDropOffload,          // a super-packet or partial checksum that the peer cannot deliver
  TxDropChecksum,         // a partial checksum that cannot be completed where its header says
  TxDropPostFailed,       // ibv_post_send refused, or the session ended with it unsent
  RxDropMalformedFrame,   // one per message whose rest cannot be read
  RxDropMalformedPacket,  // not an IP packet, or its lengths disagree
  RxDropBadSource,        // its source address is not the peer's
  RxDropMulticast,        // multicast, or broadcast, and neither is carried
  RxDropOffload,          // its virtio header does not fit the packet
  RxDropChecksum,         // a checksum that the peer completed is wrong
  RxDropTunDown,          // the interface is down (EIO)
  RxDropTunRefused,       // the kernel refused the packet (EINVAL), and nothing was left to be done
  RxDropTunError,         // any other error of the write

  TxTooBigTold,       // answers to packets that were dropped as too big
  RxOffloadRefused,   // the kernel refused a super-packet or partial checksum (EINVAL)
  RxOffloadSoftware,  // packets whose segments or checksum were therefore made here

  TxStallCredit,       // turns in which the TUN was left unread: no session could send
  TxStallMemory,       // turns in which the TUN was left unread: all slabs were in flight
  RxUnknownQueuePair,  // completions of a session that is gone
  RxError,             // completions with an error that is no flush
  TunReadError,
  kCount,
};

inline constexpr std::size_t kCounterCount = std::to_underlying(Counter::kCount);

inline constexpr std::array<std::string_view, kCounterCount> kCounterNames{
    "tun_rx_packets",
    "tun_rx_bytes",
    "peer_tx_packets",
    "peer_tx_bytes",
    "peer_tx_messages",
    "peer_tx_doorbells",
    "peer_tx_grants",
    "peer_rx_messages",
    "peer_rx_grants",
    "peer_rx_packets",
    "peer_rx_bytes",
    "tun_tx_packets",
    "tun_tx_bytes",
    "multicast_copies",
    "tx_fragments",
    "tx_drop_no_route",
    "tx_drop_own_address",
    "tx_drop_multicast",
    "tx_drop_peer_down",
    "tx_drop_queue_full",
    "tx_drop_too_big",
    "tx_drop_malformed",
    "tx_drop_offload",
    "tx_drop_checksum",
    "tx_drop_post_failed",
    "rx_drop_malformed_frame",
    "rx_drop_malformed_packet",
    "rx_drop_bad_source",
    "rx_drop_multicast",
    "rx_drop_offload",
    "rx_drop_checksum",
    "rx_drop_tun_down",
    "rx_drop_tun_refused",
    "rx_drop_tun_error",
    "tx_too_big_told",
    "rx_offload_refused",
    "rx_offload_software",
    "tx_stall_credit",
    "tx_stall_memory",
    "rx_unknown_queue_pair",
    "rx_error",
    "tun_read_error",
};
static_assert(!kCounterNames.back().empty());

[[nodiscard]] constexpr std::string_view to_string(Counter counter) {
  return kCounterNames.at(std::to_underlying(counter));
}

class Counters {
 public:
  void add(Counter counter, std::uint64_t n = 1) noexcept {
    gauges_[std::to_underlying(counter)].add(n);
  }
  [[nodiscard]] std::uint64_t value(Counter counter) const noexcept {
    return gauges_[std::to_underlying(counter)].value();
  }

 private:
  std::array<Gauge, kCounterCount> gauges_;
};

// What one worker moved to and from one peer.
struct PeerGauges {
  Gauge tx_packets, tx_bytes, rx_packets, rx_bytes;
};

}  // namespace ipoverbs::transport
