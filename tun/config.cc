#include "tun/config.h"

#include <net/if.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

// dev_valid_name() of net/core/dev.c, and no '%', which the kernel takes for a pattern.
void validate_name(std::string_view name) {
  const bool bad_character = std::ranges::any_of(name, [](char c) {
    return c == '/' || c == ':' || c == '%' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
  });
  if (name.empty() || name.size() >= IFNAMSIZ || name == "." || name == ".." || bad_character) {
    throw UsageError(
        fmt::format("interface name '{}' is not 1 to {} characters without space, '/', ':' and '%'",
                    name, IFNAMSIZ - 1));
  }
}

template <class T>
void validate_range(std::string_view what, T value, T low, T high) {
  if (value < low || value > high) {
    throw UsageError(fmt::format("{} {} is outside {}..{}", what, value, low, high));
  }
}

void validate_ipv6_mtu(const Prefix& prefix, IpMtu mtu) {
  if (prefix.address().is_v4() || mtu >= kMinIpv6Mtu) return;
  throw UsageError(fmt::format("mtu {} is too small for IPv6 ({}): at least {} is needed",
                               mtu.value(), prefix.to_string(), kMinIpv6Mtu.value()));
}

void validate_address(const Prefix& prefix) {
  const IpAddress& address = prefix.address();
  if (address.is_unspecified() || address.is_multicast() || address.is_loopback()) {
    throw UsageError(
        fmt::format("address {} cannot belong to an interface: a unicast address is needed",
                    prefix.to_string()));
  }
}

void validate_distinct(std::string_view what, std::vector<Prefix> prefixes) {
  std::ranges::sort(prefixes);
  const auto twice = std::ranges::adjacent_find(prefixes);
  if (twice == prefixes.end()) return;
  throw UsageError(fmt::format("{} {} is given twice", what, twice->to_string()));
}

}  // namespace

void validate(const Config& config) {
  validate_name(config.name);
  validate_range("number of queues", config.queues, 1U, kMaxQueues);
  validate_range("mtu", config.mtu.value(), kMinMtu.value(), kMaxMtu.value());
  if (config.gso_max_size) {
    validate_range("gso_max_size", *config.gso_max_size, kMinGsoMaxSize, kMaxGsoMaxSize);
  }
  if (config.gso_max_segments) {
    validate_range("gso_max_segs", *config.gso_max_segments, 1U, kMaxGsoMaxSegments);
  }
  std::vector<Prefix> addresses;
  for (const Prefix& prefix : config.addresses) {
    validate_address(prefix);
    validate_ipv6_mtu(prefix, config.mtu);
    addresses.emplace_back(prefix.address(), prefix.address().bits());
  }
  validate_distinct("address", addresses);
  std::vector<Prefix> routes;
  for (const Prefix& prefix : config.routes) {
    validate_ipv6_mtu(prefix, config.mtu);
    routes.push_back(prefix.network());
  }
  validate_distinct("route", routes);
}

std::uint32_t queue_packets(const Config& config) {
  constexpr std::size_t kSuperPacket = 65535;  // as IP's length fields allow
  const std::size_t largest = config.super_packets ? kSuperPacket : config.mtu.value();
  const std::size_t packets = config.queue_bytes / std::max<std::size_t>(largest, 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(packets, kMinQueuePackets, kMaxQueuePackets));
}

}  // namespace ipoverbs::tun
