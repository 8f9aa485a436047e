// Values: what the text of a setting means.
//
// Every parser takes trimmed text and gives the value, or, as the unexpected value, one sentence
// that says what is wrong and what would be right; the caller puts the setting's name in front of
// it. They take no part in what several settings mean together: that is up_options.h.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/device.h"

namespace ipoverbs::daemon {

template <class T>
using Parsed = std::expected<T, std::string>;

// Inclusive.
struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

// Decimal, or hexadecimal with 0x.
[[nodiscard]] Parsed<std::uint64_t> parse_number(std::string_view text, Range range);
// Decimal bytes, with an optional suffix K or M (1024, 1024 * 1024).
[[nodiscard]] Parsed<std::uint64_t> parse_bytes(std::string_view text, Range range);
// A decimal number with its unit: us, ms or s; or 0.
struct DurationRange {
  Duration min{};
  Duration max{};
};
[[nodiscard]] Parsed<Duration> parse_duration(std::string_view text, DurationRange range);
// "1500us", "20ms", "3s": the largest unit that divides it.
[[nodiscard]] std::string format_duration(Duration duration);
// "on" or "off".
[[nodiscard]] Parsed<bool> parse_switch(std::string_view text);
// One of `choices`: its index.
[[nodiscard]] Parsed<std::size_t> parse_choice(std::string_view text,
                                               const std::vector<std::string_view>& choices);
// A name for a network interface, as dev_valid_name() of the kernel's net/core/dev.c takes it.
[[nodiscard]] Parsed<std::string> parse_interface_name(std::string_view text);
// A prefix as it is written; "300.1.1.1/24", "/33" and multicast are refused.
[[nodiscard]] Parsed<Prefix> parse_prefix(std::string_view text);

// The index of the network interface of this name, 0 if there is none: if_nametoindex(3).
using InterfaceIndex = std::function<std::uint32_t(const std::string&)>;

// An address of the underlay: "192.0.2.2", "2001:db8::2", "fe80::2%eth0" or "gid:fe80::2:c903:1",
// each with ":port" behind it where wanted ("[2001:db8::2]:4755" for IPv6). Without a port the
// endpoint's port is 0.
[[nodiscard]] Parsed<verbs::RemoteAddress> parse_underlay(std::string_view text,
                                                          const InterfaceIndex& interface_index);

// "<underlay>[:port] <prefix>[,<prefix>...] [name=<name>]". Prefixes are as written.
struct PeerText {
  std::string name;  // the underlay as written if no name was given
  verbs::RemoteAddress underlay;
  std::vector<Prefix> prefixes;
};
[[nodiscard]] Parsed<PeerText> parse_peer(std::string_view text,
                                          const InterfaceIndex& interface_index);

// "<overlay prefix> <underlay prefix>", with equally many host bits, at most kMaxMapBits.
struct MapText {
  Prefix overlay;
  Prefix underlay;
};
inline constexpr unsigned kMaxMapBits = 8;
[[nodiscard]] Parsed<MapText> parse_map(std::string_view text);

}  // namespace ipoverbs::daemon
