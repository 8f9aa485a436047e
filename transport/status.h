// What a node tells about itself: a snapshot made of plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ip.h"
#include "transport/histogram.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

using verbs::CounterValue;

struct SessionStatus {
  unsigned index = 0;                   // of the sessions between these two nodes
  unsigned worker = 0;                  // ours, that owns it
  std::string state;                    // "idle", "dialling", "accepting", "established", "backoff"
  std::string last_error;               // why the last attempt or session ended; "" if none did
  std::uint64_t established_count = 0;  // how often it was set up
  Duration since{};                     // in this state
  // Of an established session:
  verbs::QpNumber queue_pair;
  verbs::PathMtu path_mtu;
  std::uint32_t send_credits = 0;    // messages it may send now
  std::uint32_t receive_share = 0;   // messages it may grant
  std::uint32_t queued_packets = 0;  // waiting for credit
};

struct PeerStatus {
  std::string name;
  Endpoint underlay;
  std::vector<Prefix> prefixes;
  std::string state;                           // "connected", "connecting", "down"
  IpMtu mtu;                                   // the smaller of both ends; 0 while never connected
  std::uint64_t tx_packets = 0, tx_bytes = 0;  // sent to the peer: IP packets and their bytes
  std::uint64_t rx_packets = 0, rx_bytes = 0;  // delivered from the peer
  std::vector<SessionStatus> sessions;
};

struct Status {
  std::string device_state;    // "up", "removed: ...", "cannot open: ..."
  verbs::Capabilities device;  // of the last device that was open
  std::uint64_t node_id = 0;
  IpMtu mtu;
  unsigned workers = 0;
  std::uint32_t withdrawn = 0;  // bits of Capability that the kernel here has lost (Refusals)
  std::vector<PeerStatus> peers;
  std::vector<CounterValue> counters;         // all of them, zero or not, summed over the workers
  DoorbellCounts doorbells;                   // summed over the workers
  std::vector<CounterValue> device_counters;  // of the device that is open, if it counts
};

}  // namespace ipoverbs::transport
