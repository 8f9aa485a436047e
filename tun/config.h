// What a TUN interface is to be: plain values, checked by a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ip.h"

namespace ipoverbs::tun {

// The smallest MTU of a TUN (RFC 791 asks 68 bytes of every IPv4 link; drivers/net/tun.c,
// MIN_MTU), the smallest with IPv6 on the interface (RFC 8200, section 5), and the largest that
// this project offers. The driver itself ends at 65535.
inline constexpr IpMtu kMinMtu{68};
inline constexpr IpMtu kMinIpv6Mtu{1280};
inline constexpr IpMtu kMaxMtu{65520};

// MAX_TAP_QUEUES of drivers/net/tun.c.
inline constexpr unsigned kMaxQueues = 256;

// Bounds of txqueuelen in packets, whatever the bytes say: below the floor a burst of small packets
// (whose size the kernel does not ask about) is lost although it would have been read at once;
// above the ceiling the ring's own memory and the delay of small packets serve nobody.
inline constexpr std::uint32_t kMinQueuePackets = 128;
inline constexpr std::uint32_t kMaxQueuePackets = 4096;

// Bounds of gso_max_size in bytes that validate() takes: the kernel's upper limit for a TUN is its
// tso_max_size (GSO_LEGACY_MAX_SIZE, include/linux/netdevice.h), and newer kernels refuse less than
// the largest TCP header, which depends on their configuration.
inline constexpr std::uint32_t kMinGsoMaxSize = 2048;
inline constexpr std::uint32_t kMaxGsoMaxSize = 65536;
inline constexpr std::uint32_t kMaxGsoMaxSegments = 65535;

struct Config {
  std::string name = "ipoverbs0";
  unsigned queues = 1;            // descriptors, one for each worker
  IpMtu mtu{65520};               // bytes
  std::vector<Prefix> addresses;  // of the interface, with host bits: 10.77.0.1/24
  std::vector<Prefix> routes;     // via the interface; host bits are ignored
  // The namespace of the interface: a name under /run/netns, or a path if it has a '/'. Empty: that
  // of the calling thread.
  std::string netns;
  bool up = true;  // false: somebody else brings it up, and addresses and routes follow then
  // How many bytes one queue may hold for a reader that does not read: at 10 Gb/s, 16 MiB are 13 ms
  // of delay. See queue_packets().
  std::size_t queue_bytes = std::size_t{16} << 20;
  // Super-packets may be read: packets of 64 KiB wait in the queue whatever the MTU.
  bool super_packets = true;
  std::optional<std::uint32_t> gso_max_size;      // bytes of a super-packet that is read
  std::optional<std::uint32_t> gso_max_segments;  // segments of it
};

// Throws UsageError, one line, for the first thing in `config` that can never work: a name that the
// kernel would not take, numbers out of range, IPv6 with an MTU below 1280, an address or route
// given twice, an address that no interface can have. Looks at nothing but its argument.
void validate(const Config& config);

// txqueuelen with which the largest packets of config's interface make config.queue_bytes, within
// kMinQueuePackets and kMaxQueuePackets. A TUN's ring counts packets, and its default of 500 are 32
// MB of super-packets.
[[nodiscard]] std::uint32_t queue_packets(const Config& config);

}  // namespace ipoverbs::tun
