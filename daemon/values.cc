#include "daemon/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/settings.h"

namespace ipoverbs::daemon {

namespace {

// A whole text as an unsigned number.
std::optional<std::uint64_t> to_number(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool in_range(std::uint64_t number, Range range) {
  return number >= range.min && number <= range.max;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> parts = split(text, " \t");
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

constexpr std::array<std::pair<std::string_view, Duration>, 3> kUnits{{
    {"us", std::chrono::microseconds(1)},
    {"ms", std::chrono::milliseconds(1)},
    {"s", std::chrono::seconds(1)},
}};

std::optional<Duration> to_duration(std::string_view text) {
  if (text == "0") return Duration{};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = to_number(text.substr(0, digits));
  constexpr std::uint64_t kLimit = 1'000'000'000;  // seconds of it still fit into a Duration
  if (!number || *number > kLimit) return {};
  for (const auto& [name, unit] : kUnits) {
    if (text.substr(digits) == name) return static_cast<Duration::rep>(*number) * unit;
  }
  return {};
}

struct HostPort {
  std::string_view host;
  std::optional<std::string_view> port;
};

// nullopt: brackets that do not match.
std::optional<HostPort> split_host_port(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return {};
    const std::string_view rest = text.substr(close + 1);
    const std::string_view host = text.substr(1, close - 1);
    if (rest.empty()) return HostPort{host, {}};
    if (!rest.starts_with(':')) return {};
    return HostPort{host, rest.substr(1)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return HostPort{text, {}};
  }
  return HostPort{text.substr(0, colon), text.substr(colon + 1)};
}

bool is_v4_mapped(const IpAddress& address) {
  return !address.is_v4() && Prefix(*IpAddress::parse("::ffff:0.0.0.0"), 96).contains(address);
}

Parsed<std::uint32_t> parse_scope(const IpAddress& address, std::string_view host,
                                  const InterfaceIndex& interface_index) {
  const std::size_t percent = host.find('%');
  const bool needed = !address.is_v4() && address.is_link_local();
  if (percent == std::string_view::npos) {
    if (!needed) return 0U;
    return std::unexpected(fmt::format("{} is link-local; add its network interface, as in {}%eth0",
                                       quote(host), host));
  }
  if (!needed) {
    return std::unexpected(
        fmt::format("{}: only a link-local IPv6 address takes %interface", quote(host)));
  }
  const std::string name(host.substr(percent + 1));
  const std::uint32_t index = interface_index(name);
  if (index != 0) return index;
  return std::unexpected(
      fmt::format("{}: there is no network interface {}", quote(host), quote(name)));
}

// `host` without brackets and port.
Parsed<Endpoint> parse_host(std::string_view host, const InterfaceIndex& interface_index) {
  const auto address = IpAddress::parse(host.substr(0, host.find('%')));
  if (!address) {
    return std::unexpected(fmt::format(
        "{} is not an IPv4 or IPv6 address; host names are not looked up", quote(host)));
  }
  if (address->is_unspecified() || address->is_multicast()) {
    return std::unexpected(fmt::format("{} is not the address of one host", quote(host)));
  }
  if (is_v4_mapped(*address)) {
    return std::unexpected(
        fmt::format("{} is a mapped IPv4 address; write the IPv4 address", quote(host)));
  }
  const auto scope = parse_scope(*address, host, interface_index);
  if (!scope) return std::unexpected(scope.error());
  return Endpoint{*address, 0, *scope};
}

Parsed<Endpoint> parse_gid(std::string_view text) {
  const auto gid = IpAddress::parse(text);
  if (!gid || gid->is_v4() || gid->is_unspecified() || gid->is_multicast()) {
    return std::unexpected(fmt::format("{} is not a GID, as in gid:fe80::2:c903:1:2", quote(text)));
  }
  return Endpoint{*gid, 0, 0};
}

Parsed<std::vector<Prefix>> parse_prefix_list(std::string_view text) {
  std::vector<Prefix> prefixes;
  for (const std::string_view part : split(text, ",")) {
    if (part.empty()) {
      return std::unexpected(
          fmt::format("{} has an empty prefix; write 10.0.0.0/24,fd00::/64", quote(text)));
    }
    const auto prefix = parse_prefix(part);
    if (!prefix) return std::unexpected(prefix.error());
    prefixes.push_back(*prefix);
  }
  return prefixes;
}

bool is_peer_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 63 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

Parsed<std::uint64_t> parse_number(std::string_view text, Range range) {
  const auto number = text.starts_with("0x") ? to_number(text.substr(2), 16) : to_number(text);
  if (number && in_range(*number, range)) return *number;
  return std::unexpected(
      fmt::format("{} is not a number from {} to {}", quote(text), range.min, range.max));
}

Parsed<std::uint64_t> parse_bytes(std::string_view text, Range range) {
  const std::uint64_t unit = text.ends_with('K') ? 1024 : text.ends_with('M') ? 1024 * 1024 : 1;
  const auto number = to_number(unit == 1 ? text : text.substr(0, text.size() - 1));
  if (number && *number <= range.max / unit && in_range(*number * unit, range)) {
    return *number * unit;
  }
  return std::unexpected(fmt::format("{} is not a number of bytes from {} to {}, as in 65536 or 4M",
                                     quote(text), range.min, range.max));
}

std::string format_duration(Duration duration) {
  const auto [name, unit] = *std::ranges::find_if(
      kUnits.rbegin(), kUnits.rend() - 1,
      [&](const auto& candidate) { return duration % candidate.second == Duration{}; });
  return fmt::format("{}{}", duration / unit, name);
}

Parsed<Duration> parse_duration(std::string_view text, DurationRange range) {
  const auto duration = to_duration(text);
  if (duration && *duration >= range.min && *duration <= range.max) return *duration;
  return std::unexpected(fmt::format("{} is not a time from {} to {} with its unit us, ms or s",
                                     quote(text), format_duration(range.min),
                                     format_duration(range.max)));
}

Parsed<bool> parse_switch(std::string_view text) {
  if (text == "on" || text == "off") return text == "on";
  return std::unexpected(fmt::format("{} is neither on nor off", quote(text)));
}

Parsed<std::size_t> parse_choice(std::string_view text,
                                 const std::vector<std::string_view>& choices) {
  const auto found = std::ranges::find(choices, text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  return std::unexpected(fmt::format("{} is not one of {}", quote(text), fmt::join(choices, ", ")));
}

Parsed<std::string> parse_interface_name(std::string_view text) {
  constexpr std::size_t kMaxName = 15;  // IFNAMSIZ - 1, linux/if.h
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  // '%' makes the kernel take the name for a pattern.
  if (!text.empty() && text.size() <= kMaxName && printable && text != "." && text != ".." &&
      text.find_first_of("/:%") == std::string_view::npos) {
    return std::string(text);
  }
  return std::unexpected(fmt::format(
      "{} is not an interface name: 1 to {} characters without blanks, '/', ':' and '%'",
      quote(text), kMaxName));
}

Parsed<Prefix> parse_prefix(std::string_view text) {
  const auto prefix = Prefix::parse(text);
  if (!prefix) {
    return std::unexpected(fmt::format(
        "{} is not a prefix, as in 10.0.0.0/24 (length 0 to 32) or fd00::/64 (0 to 128)",
        quote(text)));
  }
  if (prefix->address().is_multicast()) {
    return std::unexpected(fmt::format("{} is multicast; a prefix is unicast", quote(text)));
  }
  return *prefix;
}

Parsed<verbs::RemoteAddress> parse_underlay(std::string_view text,
                                            const InterfaceIndex& interface_index) {
  constexpr std::string_view kGid = "gid:";
  const bool by_gid = text.starts_with(kGid);
  const auto parts = split_host_port(by_gid ? text.substr(kGid.size()) : text);
  if (!parts) {
    return std::unexpected(fmt::format(
        "{} is not an address; an IPv6 address with a port is [2001:db8::1]:4755", quote(text)));
  }
  auto endpoint = by_gid ? parse_gid(parts->host) : parse_host(parts->host, interface_index);
  if (!endpoint) return std::unexpected(endpoint.error());
  if (parts->port) {
    const auto port = parse_number(*parts->port, {1, 65535});
    if (!port) return std::unexpected(fmt::format("port {}", port.error()));
    endpoint->port = static_cast<std::uint16_t>(*port);
  }
  return verbs::RemoteAddress{*endpoint, by_gid};
}

Parsed<PeerText> parse_peer(std::string_view text, const InterfaceIndex& interface_index) {
  constexpr std::string_view kForm = "<underlay>[:port] <prefix>[,<prefix>...] [name=<name>]";
  constexpr std::string_view kName = "name=";
  const auto parts = words(text);
  if (parts.size() < 2 || parts.size() > 3) {
    return std::unexpected(fmt::format("{} is not '{}'", quote(text), kForm));
  }
  const auto underlay = parse_underlay(parts[0], interface_index);
  if (!underlay) return std::unexpected(underlay.error());
  auto prefixes = parse_prefix_list(parts[1]);
  if (!prefixes) return std::unexpected(prefixes.error());
  if (parts.size() == 2) return PeerText{std::string(parts[0]), *underlay, *std::move(prefixes)};
  if (!parts[2].starts_with(kName)) {
    return std::unexpected(fmt::format(
        "{} is not name=<name>; prefixes are separated by commas without blanks", quote(parts[2])));
  }
  const std::string_view name = parts[2].substr(kName.size());
  if (!is_peer_name(name)) {
    return std::unexpected(
        fmt::format("{} is not a name: 1 to 63 letters, digits, '.', '_' and '-'", quote(name)));
  }
  return PeerText{std::string(name), *underlay, *std::move(prefixes)};
}

Parsed<MapText> parse_map(std::string_view text) {
  const auto parts = words(text);
  if (parts.size() != 2) {
    return std::unexpected(
        fmt::format("{} is not '<overlay prefix> <underlay prefix>'", quote(text)));
  }
  const auto overlay = parse_prefix(parts[0]);
  if (!overlay) return std::unexpected(overlay.error());
  const auto underlay = parse_prefix(parts[1]);
  if (!underlay) return std::unexpected(underlay.error());
  const unsigned bits = overlay->address().bits() - overlay->length();
  if (bits != underlay->address().bits() - underlay->length()) {
    return std::unexpected(fmt::format("{} and {} have different numbers of host bits",
                                       quote(parts[0]), quote(parts[1])));
  }
  if (bits > kMaxMapBits) {
    return std::unexpected(fmt::format("{} has {} host bits; a map has at most {} ({} peers)",
                                       quote(parts[0]), bits, kMaxMapBits, 1U << kMaxMapBits));
  }
  if (underlay->address().is_link_local() && !underlay->address().is_v4()) {
    return std::unexpected(
        fmt::format("{} is link-local; a map's underlay is not", quote(parts[1])));
  }
  return MapText{overlay->network(), underlay->network()};
}

}  // namespace ipoverbs::daemon
