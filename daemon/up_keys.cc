// The table of keys that `ipoverbs up` knows.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "daemon/up_options.h"
#include "transport/hello.h"
#include "transport/send_queue.h"

namespace ipoverbs::daemon {

namespace {

using namespace std::chrono_literals;

template <class T>
T accept(const Setting& setting, Parsed<T> value) {
  if (!value) refuse(setting.origin, value.error());
  return *std::move(value);
}

template <class T>
T number(const Setting& setting, Range range) {
  return static_cast<T>(accept(setting, parse_number(setting.value, range)));
}

Duration time(const Setting& setting, DurationRange range) {
  return accept(setting, parse_duration(setting.value, range));
}

void set_underlay(UpDraft& draft, const Setting& setting) {
  const auto address = accept(setting, parse_underlay(setting.value, *draft.interface_index));
  if (address.endpoint.port != 0) {
    refuse(setting.origin,
           fmt::format("{} has a port; give it by the key 'port'", quote(setting.value)));
  }
  verbs::DeviceRequest& device = draft.command.options.device;
  device.underlay = address.endpoint;
  device.by_gid = address.by_gid;
}

void set_device(UpDraft& draft, const Setting& setting) {
  UpOptions& options = draft.command.options;
  options.device.device.reset();
  options.device_kind = setting.value == "auto"   ? DeviceKind::Auto
                        : setting.value == "soft" ? DeviceKind::Soft
                                                  : DeviceKind::Rdma;
  if (options.device_kind == DeviceKind::Rdma && setting.value != "rdma") {
    options.device.device = setting.value;
  }
}

void set_soft_faults(UpDraft& draft, const Setting& setting) {
  try {
    draft.command.options.soft_faults = verbs::soft::parse_fault_plan(setting.value);
  } catch (const UsageError& error) {
    refuse(setting.origin, error.what());
  }
}

void add_address(UpDraft& draft, const Setting& setting) {
  const Prefix address = accept(setting, parse_prefix(setting.value));
  if (address.address().is_unspecified() || address.address().is_loopback()) {
    refuse(setting.origin, fmt::format("{} is not the address of one host, as in 10.0.0.1/24",
                                       quote(setting.value)));
  }
  draft.addresses.push_back({address, setting.origin});
}

void warn_host_bits(UpDraft& draft, const Setting& setting, const Prefix& prefix) {
  if (!prefix.has_host_bits()) return;
  draft.command.warnings.push_back(fmt::format("{}: {} has host bits; taken as {}", setting.origin,
                                               prefix.to_string(), prefix.network().to_string()));
}

void add_peer(UpDraft& draft, const Setting& setting) {
  PeerText text = accept(setting, parse_peer(setting.value, *draft.interface_index));
  transport::PeerOptions peer{std::move(text.name), text.underlay, {}};
  for (const Prefix& prefix : text.prefixes) {
    warn_host_bits(draft, setting, prefix);
    peer.prefixes.push_back(prefix.network());
  }
  draft.peers.push_back({std::move(peer), setting.origin});
}

void add_map(UpDraft& draft, const Setting& setting) {
  draft.maps.push_back({accept(setting, parse_map(setting.value)), setting.origin});
}

void set_control(UpDraft& draft, const Setting& setting) {
  if (setting.value.size() > kMaxControlPath) {
    refuse(setting.origin, fmt::format("the path has {} bytes; at most {} are allowed",
                                       setting.value.size(), kMaxControlPath));
  }
  draft.command.options.control = setting.value;
}

struct Entry {
  Key key;
  void (*apply)(UpDraft& draft, const Setting& setting);
};

struct Group {
  std::string_view title;
  std::vector<Entry> entries;
};

std::vector<Group> up_table() {
  using D = UpDraft&;
  using S = const Setting&;
  return {
      {"Command line only",
       {
           {{"help", "", "show this text"}, nullptr},
           {{"config", "FILE", "read options from FILE"}, nullptr},
           {{"check", "", "check the options and stop"}, [](D d, S) { d.command.check = true; }},
       }},
      {"Underlay",
       {
           {{"underlay", "ADDRESS",
             "required: this host's address on the RDMA network: IPv4, IPv6, link-local IPv6 as "
             "fe80::1%eth0, or gid:<GID> for InfiniBand without IPoIB"},
            set_underlay},
           {{"device", "NAME",
             "auto, rdma, soft, or an RDMA device's name (default auto: the RDMA device that owns "
             "the underlay address, else the software device)"},
            set_device},
           {{"soft-faults", "PLAN",
             "for tests: faults of the software device, as 'seed=7 out:drop=0.01 in:drop=0.01'"},
            set_soft_faults},
           {{"port", "N", "port of the connection manager, 1..65535 (default 4755)"},
            [](D d, S s) {
              d.command.options.transport.port = number<std::uint16_t>(s, {1, 65535});
            }},
           {{"pkey", "N", "InfiniBand partition key, as 0x8001 (default: the port's first)"},
            [](D d, S s) {
              d.command.options.transport.path.pkey = number<std::uint16_t>(s, {1, 65535});
            }},
           {{"service-level", "N", "InfiniBand service level, 0..15"},
            [](D d, S s) {
              d.command.options.transport.path.service_level = number<std::uint8_t>(s, {0, 15});
            }},
           {{"traffic-class", "N", "RoCE: DSCP * 4, 0..255"},
            [](D d, S s) {
              d.command.options.transport.path.traffic_class = number<std::uint8_t>(s, {0, 255});
            }},
       }},
      {"TUN interface",
       {
           {{"tun", "NAME", "name of the interface (default ipov0)"},
            [](D d, S s) {
              d.command.options.tun.name = accept(s, parse_interface_name(s.value));
            }},
           {{"tun-netns", "NAME", "network namespace of the interface: a name or a path"},
            [](D d, S s) { d.command.options.tun.netns = s.value; }},
           {{"mtu", "BYTES", "68..65520, from 1280 with IPv6 (default 65520)"},
            [](D d, S s) {
              const IpMtu mtu{
                  number<std::uint32_t>(s, {tun::kMinMtu.value(), tun::kMaxMtu.value()})};
              d.command.options.tun.mtu = d.command.options.transport.mtu = mtu;
            }},
           {{"address", "PREFIX", "address and prefix length, as 10.0.0.1/24; repeatable", true},
            add_address},
           {{"routes", "on|off", "routes to the peers' prefixes (default on)"},
            [](D d, S s) { d.routes = accept(s, parse_switch(s.value)); }},
           {{"offloads", "on|off", "TCP and UDP super-packets and partial checksums (default on)"},
            [](D d, S s) {
              UpOptions& o = d.command.options;
              o.offloads = o.tun.super_packets = accept(s, parse_switch(s.value));
            }},
           {{"workers", "N", "queues of the interface, a thread each, 1..64 (default 2)"},
            [](D d, S s) {
              d.command.options.tun.queues = number<unsigned>(s, {1, transport::kMaxWorkers});
            }},
           {{"queue-bytes", "BYTES", "what one queue may hold, 64K..1024M (default 16M)"},
            [](D d, S s) {
              d.command.options.tun.queue_bytes =
                  accept(s, parse_bytes(s.value, {64U << 10, 1U << 30}));
            }},
       }},
      {"Peers",
       {
           {{"peer", "PEER",
             "'<underlay>[:port] <prefix>[,<prefix>...] [name=<name>]': where a peer is and "
             "which overlay addresses are behind it; repeatable",
             true},
            add_peer},
           {{"map", "MAP",
             "'<overlay prefix> <underlay prefix>': a peer for every host of the underlay prefix, "
             "host bits carry over, at most 256; repeatable",
             true},
            add_map},
           {{"multicast", "off|all",
             "broadcast and multicast: dropped, or a copy to every peer (default off)"},
            [](D d, S s) {
              const std::size_t choice = accept(s, parse_choice(s.value, {"off", "all"}));
              d.command.options.transport.multicast =
                  choice == 0 ? transport::Multicast::Off : transport::Multicast::All;
            }},
       }},
      {"Sessions",
       {
           {{"connect-timeout", "TIME",
             "an attempt is given up, 100ms..60s (default 4s; the first 1s)"},
            [](D d, S s) { d.command.options.transport.connect_timeout = time(s, {100ms, 60s}); }},
           {{"keepalive", "TIME", "sent after silence, 10ms..3600s (default 1s)"},
            [](D d, S s) { d.command.options.transport.keepalive = time(s, {10ms, 3600s}); }},
           {{"dead-time", "TIME",
             "a peer is dead from which nothing came; more than keepalive (default 5s)"},
            [](D d, S s) { d.command.options.transport.dead_time = time(s, {20ms, 7200s}); }},
       }},
      {"Data path, per worker",
       {
           {{"receive-buffers", "N", "messages of 64K, 8..65536 (default 128)"},
            [](D d, S s) {
              d.command.options.transport.receive_buffers = number<std::uint32_t>(s, {8, 65536});
            }},
           {{"send-depth", "N", "sends in flight for each session, 8..16384 (default 128)"},
            [](D d, S s) {
              d.command.options.transport.send_depth = number<std::uint32_t>(s, {8, 16384});
            }},
           {{"packets-per-message", "N", "packed together, 1..256 (default 32)"},
            [](D d, S s) {
              d.command.options.transport.packets_per_message = number<std::uint32_t>(s, {1, 256});
            }},
           {{"messages-per-doorbell", "N", "posted together, 1..32 (default 16)"},
            [](D d, S s) {
              d.command.options.transport.messages_per_doorbell =
                  number<std::uint32_t>(s, {1, transport::SendQueue::kMaxChain});
            }},
           {{"signal-interval", "N",
             "one send in N is signalled, 1..8192, at most half of send-depth (default 16)"},
            [](D d, S s) {
              d.command.options.transport.signal_interval = number<std::uint32_t>(s, {1, 8192});
            }},
           {{"window-bytes", "BYTES",
             "sent and not yet acknowledged, for each session, 64K..1024M (default 1M)"},
            [](D d, S s) {
              d.command.options.transport.window_bytes = static_cast<std::uint32_t>(
                  accept(s, parse_bytes(s.value, {64U << 10, 1U << 30})));
            }},
           {{"checksum", "auto|full|full-separate",
             "partial checksums: completed and verified end to end (full), or passed through, "
             "guarded by the link's own check (auto); full-separate never sums while it copies, "
             "for comparison (default full)"},
            [](D d, S s) {
              constexpr std::array kChoices{transport::Checksum::Auto, transport::Checksum::Full,
                                            transport::Checksum::FullSeparate};
              d.command.options.transport.checksum =
                  kChoices.at(accept(s, parse_choice(s.value, {"auto", "full", "full-separate"})));
            }},
           {{"copy-break", "BYTES",
             "packets up to this size are copied together, larger ones gathered where they lie, "
             "0..65535 (default 0)"},
            [](D d, S s) {
              d.command.options.transport.copy_break = number<std::uint32_t>(s, {0, 65535});
            }},
           {{"spin", "TIME", "poll so long after work before sleeping, 0..1s (default 0)"},
            [](D d, S s) { d.command.options.transport.spin = time(s, {0s, 1s}); }},
           {{"pin-workers", "on|off", "each worker on a CPU of its own (default off)"},
            [](D d, S s) {
              d.command.options.transport.pin_workers = accept(s, parse_switch(s.value));
            }},
       }},
      {"Daemon",
       {
           {{"control", "PATH", "socket for 'ipoverbs status' (default /run/ipoverbs/<tun>.sock)"},
            set_control},
           {{"log-level", "LEVEL", "error, warn, info, debug or trace (default info)"},
            [](D d, S s) {
              constexpr std::array<std::string_view, 5> kLevels{"error", "warn", "info", "debug",
                                                                "trace"};
              accept(s, parse_choice(s.value, {kLevels.begin(), kLevels.end()}));
              d.command.options.log_level = s.value;
            }},
       }},
  };
}

}  // namespace

const Grammar& up_grammar() {
  static const Grammar grammar("ipoverbs up", [] {
    std::vector<KeyGroup> groups;
    for (const Group& group : up_table()) {
      groups.push_back({group.title, {}});
      for (const Entry& entry : group.entries) groups.back().keys.push_back(entry.key);
    }
    return groups;
  }());
  return grammar;
}

void apply_setting(UpDraft& draft, const Setting& setting) {
  static const std::vector<Group> table = up_table();
  for (const Group& group : table) {
    for (const Entry& entry : group.entries) {
      if (entry.key.name != setting.key) continue;
      if (entry.apply != nullptr) entry.apply(draft, setting);
      draft.origins[setting.key] = setting.origin;
      return;
    }
  }
}

}  // namespace ipoverbs::daemon
