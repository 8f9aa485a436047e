// What `ipoverbs up` was told: the keys that it knows, and their values checked one by one and
// against one another.
//
// Theory of operation. parse_up() takes the command line, reads the configuration file that it may
// name, gives each setting to its entry in one table (up_keys.cc) and then checks what several
// settings mean together (up_checks.cc). A key given on the command line replaces the file's; the
// keys that may be repeated (address, peer, map) add up. The first thing wrong is thrown as a
// UsageError of one line. Nothing of the system is touched, apart from the file and the names of
// network interfaces.
//
// Rules between settings:
// - Prefixes of peers lose their host bits, with a warning. One prefix belongs to one peer; of
//   nested ones the longest match counts.
// - No underlay address, ours or a peer's, lies within an overlay prefix: its packets would be
//   routed into the tunnel that they carry. (GIDs are outside IP routing and are not checked.)
// - An address of our own is no peer's host prefix.
// - MTU 1280 at least where IPv6 is carried (RFC 8200, section 5).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ip.h"
#include "daemon/device_choice.h"
#include "daemon/settings.h"
#include "daemon/values.h"
#include "transport/options.h"
#include "tun/config.h"
#include "verbs/open.h"

namespace ipoverbs::daemon {

inline constexpr std::string_view kDefaultTun = "ipov0";
inline constexpr std::size_t kMaxPeers = 4096;       // after the maps are expanded
inline constexpr std::size_t kMaxControlPath = 107;  // sun_path without its NUL, unix(7)

struct UpOptions {
  // Complete, routes included. Two workers, for that is what several flows want on two CPUs already
  // (docs/performance.md).
  tun::Config tun = [] {
    tun::Config config;
    config.queues = 2;
    return config;
  }();
  bool offloads = true;  // TSO, USO and checksum; off: packets are read whole and complete
  verbs::DeviceRequest device;
  DeviceKind device_kind = DeviceKind::Auto;
  std::optional<verbs::soft::FaultPlan> soft_faults;
  transport::Options transport;
  std::string control;  // path of the control socket
  std::string log_level = "info";
};

struct UpCommand {
  UpOptions options;
  bool check = false;
  bool help = false;                  // then the rest is not filled in
  std::vector<std::string> warnings;  // one line each
};

// `args`: behind "up". Throws UsageError.
[[nodiscard]] UpCommand parse_up(std::span<const std::string> args,
                                 const InterfaceIndex& interface_index);

// The settings alone, for parse_up() and the fuzzer. Throws UsageError. `file` comes first.
[[nodiscard]] UpCommand build_up(const std::vector<Setting>& file,
                                 const std::vector<Setting>& command_line,
                                 const InterfaceIndex& interface_index);

[[nodiscard]] const Grammar& up_grammar();

[[nodiscard]] std::string default_control_path(std::string_view tun_name);

// --- between up_options.cc, up_keys.cc and up_checks.cc ---

struct PeerDraft {
  transport::PeerOptions peer;
  std::string origin;
};

struct MapDraft {
  MapText map;
  std::string origin;
};

struct AddressDraft {
  Prefix address;
  std::string origin;
};

// Options while they are being read.
struct UpDraft {
  UpCommand command;
  const InterfaceIndex* interface_index = nullptr;
  std::vector<AddressDraft> addresses;
  std::vector<PeerDraft> peers;
  std::vector<MapDraft> maps;
  bool routes = true;                          // to every peer's prefixes
  std::map<std::string, std::string> origins;  // of the keys that were given, the last of each

  // How a message names `key`.
  [[nodiscard]] std::string origin(const std::string& key) const;
};

// Gives `setting` to its entry in the table. Throws UsageError.
void apply_setting(UpDraft& draft, const Setting& setting);

// Makes peers of the maps, fills in defaults and checks the rules above. Throws UsageError.
void complete_draft(UpDraft& draft);

}  // namespace ipoverbs::daemon
