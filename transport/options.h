// What a node is told: parsed and checked once, constant from then on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ip.h"
#include "transport/hello.h"
#include "verbs/device.h"

namespace ipoverbs::transport {

// A peer: where it is, and which addresses are behind it. The prefixes say what is sent there and
// what may come from there.
struct PeerOptions {
  std::string name;               // for people: as configured, or the underlay address
  verbs::RemoteAddress underlay;  // its port is the peer's listening port
  std::vector<Prefix> prefixes;   // without host bits
};

// Who sees to it that a packet's checksum is complete somewhere on its way.
enum class Checksum : std::uint8_t {
  Auto,          // nobody: a partial checksum crosses as it is, and the link's own check guards it
  Full,          // the sender completes it, the receiver verifies it and makes it partial again
  FullSeparate,  // the same, but where packets are copied, the sum is a pass of its own: for
                 // comparison
};

enum class Multicast : std::uint8_t {
  Off,  // broadcast and multicast packets are dropped and counted
  All,  // a unicast copy to every connected peer
};

// How often a worker looks at its sessions: keepalives, dead peers. Between these, as often as
// keepalive and dead time ask for.
inline constexpr Duration kLongestTick = std::chrono::milliseconds(200);
inline constexpr Duration kShortestTick = std::chrono::milliseconds(5);

struct Options {
  std::uint16_t port = kDefaultPort;  // listened on, in the connection manager's TCP port space
  IpMtu mtu{65520};                   // of the TUN interface, bytes
  std::vector<Prefix> own;  // the addresses of the TUN interface: traffic from a peer is for them
  std::vector<PeerOptions> peers;
  verbs::PathOptions path;
  Multicast multicast = Multicast::Off;
  Checksum checksum = Checksum::Full;
  // Packets of at most so many bytes are copied together instead of gathered where they lie.
  std::uint32_t copy_break = 0;
  // Bits of Capability (transport/hello.h): what the TUN here was seen to deliver. Peers are told.
  std::uint32_t capabilities = 0;

  // Sessions.
  Duration first_timeout = std::chrono::seconds(1);       // of the first attempt; doubled, at most
  Duration connect_timeout = std::chrono::seconds(4);     // an attempt is given up after it
  Duration backoff_min = std::chrono::milliseconds(100);  // between attempts, doubled each time
  Duration backoff_max = std::chrono::seconds(1);
  Duration keepalive = std::chrono::seconds(1);  // sent when nothing else was
  // A peer from which nothing came is dead. At least 2 * kShortestTick more than keepalive.
  Duration dead_time = std::chrono::seconds(5);

  // The data path, per worker.
  std::uint32_t receive_buffers = 128;    // receives that sessions share, beyond a few of their own
  std::uint32_t slabs = 64;               // of 256 KiB, to send from
  std::uint32_t window_bytes = 1U << 20;  // in flight per session; more waits in the TUN
  std::uint32_t send_depth = 128;         // work requests in flight per session
  std::uint32_t packets_per_message = 32;    // 1: no packing
  std::uint32_t messages_per_doorbell = 16;  // 1: no chaining
  std::uint32_t signal_interval = 16;        // one work request in so many is signalled
  Duration spin{0};                          // polls so long after work before it sleeps
  bool pin_workers = false;                  // worker i on the i-th CPU that the process may use
};

}  // namespace ipoverbs::transport
