// What a daemon tells about itself, as a table for people and as JSON for programs.
//
// Directions are seen from this node: tun_rx is what it read from the TUN, peer_tx and a peer's tx
// what it sent to peers, rx what came from them, tun_tx what it wrote to the TUN. Only the object
// tun.kernel has the kernel's direction, which is the opposite, as `ip -s link` shows it.
//
// The keys of the JSON are an interface: they are described in docs/manual.md and are added to, not
// changed. Counters have the names of transport/counters.h. 64-bit identifiers are text (node_id),
// 64-bit counts are numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/ip.h"
#include "daemon/up_options.h"
#include "transport/status.h"
#include "tun/interface.h"

namespace ipoverbs::daemon {

struct TunReport {
  tun::Config config;
  std::string state;  // "up", "down", "removed"
  std::uint32_t queue_packets = 0;
  tun::Offloads read;       // what packets that are read may leave undone now
  tun::Offloads write;      // what packets that are written may leave undone
  tun::Offloads withdrawn;  // what no longer: the kernel came to refuse it
  std::optional<tun::Statistics> kernel;
};

struct DaemonStatus {
  std::string version;
  std::int64_t pid = 0;
  Duration uptime{};
  Endpoint underlay;  // with the listening port
  TunReport tun;
  transport::Status node;
};

[[nodiscard]] std::string format_status_text(const DaemonStatus& status);
// One object, indented by two blanks, ended by a newline.
[[nodiscard]] std::string format_status_json(const DaemonStatus& status);

}  // namespace ipoverbs::daemon
