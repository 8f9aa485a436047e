#include "tun/netlink.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

static_assert(kNoAddressGeneration == IN6_ADDR_GEN_MODE_NONE);

// IFF_TAP of <linux/if_tun.h>, as IFLA_TUN_TYPE tells it.
constexpr std::uint8_t kTypeTap = 2;

Statistics parse_statistics(const nlattr* attribute) {
  if (attribute == nullptr) return {};
  rtnl_link_stats64 s{};
  const auto bytes = payload_of(attribute);
  std::memcpy(&s, bytes.data(), std::min(bytes.size(), sizeof s));
  return {.rx_packets = s.rx_packets,
          .rx_bytes = s.rx_bytes,
          .rx_errors = s.rx_errors,
          .rx_dropped = s.rx_dropped,
          .tx_packets = s.tx_packets,
          .tx_bytes = s.tx_bytes,
          .tx_errors = s.tx_errors,
          .tx_dropped = s.tx_dropped};
}

TunInfo parse_tun(nlattr* data) {
  const auto tun = nested_in<IFLA_TUN_MAX + 1>(data);
  return {.tap = get_u8(tun[IFLA_TUN_TYPE]) == kTypeTap,
          .persistent = get_u8(tun[IFLA_TUN_PERSIST]) != 0,
          .multi_queue = get_u8(tun[IFLA_TUN_MULTI_QUEUE]) != 0,
          .queues = get_u32(tun[IFLA_TUN_NUM_QUEUES]) + get_u32(tun[IFLA_TUN_NUM_DISABLED_QUEUES])};
}

std::optional<std::uint8_t> parse_address_generation(nlattr* families) {
  const auto by_family = nested_in<AF_INET6 + 1>(families);
  const auto inet6 = nested_in<IFLA_INET6_MAX + 1>(by_family[AF_INET6]);
  const nlattr* const mode = inet6[IFLA_INET6_ADDR_GEN_MODE];
  return mode != nullptr ? std::optional(::nla_get_u8(mode)) : std::nullopt;
}

LinkInfo parse_link(nlmsghdr& message) {
  const auto fixed = fixed_part<ifinfomsg>(message);
  const auto link = attributes_of<ifinfomsg, IFLA_MAX + 1>(message);
  const auto info = nested_in<IFLA_INFO_MAX + 1>(link[IFLA_LINKINFO]);
  LinkInfo result;
  result.index = fixed.ifi_index;
  result.up = (fixed.ifi_flags & IFF_UP) != 0;
  result.mtu = get_u32(link[IFLA_MTU]);
  result.queue_length = get_u32(link[IFLA_TXQLEN]);
  result.gso_max_size = get_u32(link[IFLA_GSO_MAX_SIZE]);
  result.gso_max_segments = get_u32(link[IFLA_GSO_MAX_SEGS]);
  result.ipv6_address_generation = parse_address_generation(link[IFLA_AF_SPEC]);
  result.statistics = parse_statistics(link[IFLA_STATS64]);
  if (info[IFLA_INFO_KIND] != nullptr) result.kind = ::nla_get_string(info[IFLA_INFO_KIND]);
  if (result.kind == "tun") result.tun = parse_tun(info[IFLA_INFO_DATA]);
  return result;
}

std::optional<Prefix> parse_address(nlmsghdr& message, int index) {
  const auto fixed = fixed_part<ifaddrmsg>(message);
  if (fixed.ifa_index != static_cast<unsigned>(index)) return std::nullopt;
  const auto attributes = attributes_of<ifaddrmsg, IFA_MAX + 1>(message);
  // Where both are told, IFA_ADDRESS may be the far end of a point-to-point link.
  auto address = get_address(attributes[IFA_LOCAL]);
  if (!address) address = get_address(attributes[IFA_ADDRESS]);
  if (!address || fixed.ifa_prefixlen > address->bits()) return std::nullopt;
  return Prefix(*address, fixed.ifa_prefixlen);
}

std::optional<Prefix> parse_route(nlmsghdr& message, int index) {
  const auto fixed = fixed_part<rtmsg>(message);
  const auto attributes = attributes_of<rtmsg, RTA_MAX + 1>(message);
  if (fixed.rtm_table != RT_TABLE_MAIN || fixed.rtm_type != RTN_UNICAST ||
      (fixed.rtm_flags & RTM_F_CLONED) != 0 ||
      get_u32(attributes[RTA_OIF]) != static_cast<unsigned>(index)) {
    return std::nullopt;
  }
  const auto any = fixed.rtm_family == AF_INET ? IpAddress{} : IpAddress::v6({});
  const auto address = get_address(attributes[RTA_DST]).value_or(any);
  if (fixed.rtm_dst_len > address.bits()) return std::nullopt;
  return Prefix(address, fixed.rtm_dst_len);
}

unsigned char family_of(const Prefix& prefix) {
  return prefix.address().is_v4() ? AF_INET : AF_INET6;
}

}  // namespace

std::optional<LinkInfo> RouteSocket::get_link(const NetlinkRequest& request,
                                              const std::string& what) {
  std::optional<LinkInfo> found;
  const int error =
      socket_.transact(request, [&](nlmsghdr& message) { found = parse_link(message); });
  if (error != 0 && error != ENODEV) {
    throw SystemError(error, fmt::format("ask for interface {}", what));
  }
  return found;
}

std::optional<LinkInfo> RouteSocket::find_link(const std::string& name) {
  NetlinkRequest request(RTM_GETLINK, 0);
  request.header(ifinfomsg{});
  request.string(IFLA_IFNAME, name);
  return get_link(request, name);
}

LinkInfo RouteSocket::link(int index) {
  NetlinkRequest request(RTM_GETLINK, 0);
  ifinfomsg fixed{};
  fixed.ifi_index = index;
  request.header(fixed);
  auto found = get_link(request, fmt::format("number {}", index));
  if (!found) throw SystemError(ENODEV, fmt::format("ask for interface number {}", index));
  return *found;
}

int RouteSocket::change_link(int index, const LinkChange& change) {
  NetlinkRequest request(RTM_NEWLINK, 0);
  ifinfomsg fixed{};
  fixed.ifi_index = index;
  if (change.up) {
    fixed.ifi_change = IFF_UP;
    fixed.ifi_flags = *change.up ? unsigned{IFF_UP} : 0U;
  }
  request.header(fixed);
  if (change.mtu) request.u32(IFLA_MTU, *change.mtu);
  if (change.queue_length) request.u32(IFLA_TXQLEN, *change.queue_length);
  if (change.gso_max_size) request.u32(IFLA_GSO_MAX_SIZE, *change.gso_max_size);
  if (change.gso_max_segments) request.u32(IFLA_GSO_MAX_SEGS, *change.gso_max_segments);
  if (change.ipv6_address_generation) {
    nlattr* const families = request.begin(IFLA_AF_SPEC);
    nlattr* const inet6 = request.begin(AF_INET6);
    request.u8(IFLA_INET6_ADDR_GEN_MODE, *change.ipv6_address_generation);
    request.end(inet6);
    request.end(families);
  }
  return socket_.transact(request);
}

// Lists something of both families, again if it changed while the kernel was telling.
std::vector<Prefix> RouteSocket::list(const Build& build, const Parse& parse, const char* what) {
  constexpr int kAttempts = 10;
  std::vector<Prefix> found;
  for (const int family : {AF_INET, AF_INET6}) {
    int error = EINTR;
    for (int i = 0; i < kAttempts && error == EINTR; ++i) {
      error = socket_.transact(build(static_cast<unsigned char>(family)), [&](nlmsghdr& message) {
        if (const auto prefix = parse(message)) found.push_back(*prefix);
      });
    }
    // A kernel without IPv6 has none of them.
    const bool without_ipv6 = family == AF_INET6 && (error == EAFNOSUPPORT || error == EOPNOTSUPP);
    if (error != 0 && !without_ipv6) throw SystemError(error, what);
  }
  return found;
}

std::vector<Prefix> RouteSocket::addresses(int index) {
  const auto build = [index](unsigned char family) {
    NetlinkRequest request(RTM_GETADDR, NLM_F_DUMP);
    ifaddrmsg fixed{};
    fixed.ifa_family = family;
    fixed.ifa_index = static_cast<unsigned>(index);
    request.header(fixed);
    return request;
  };
  return list(
      build, [index](nlmsghdr& message) { return parse_address(message, index); },
      "list addresses");
}

int RouteSocket::change_address(int type, int flags, int index, const Prefix& address) {
  NetlinkRequest request(type, flags);
  ifaddrmsg fixed{};
  fixed.ifa_family = family_of(address);
  fixed.ifa_prefixlen = static_cast<std::uint8_t>(address.length());
  fixed.ifa_flags = address.address().is_v4() ? 0 : IFA_F_NODAD;
  fixed.ifa_index = static_cast<unsigned>(index);
  request.header(fixed);
  request.address(IFA_LOCAL, address.address());
  request.address(IFA_ADDRESS, address.address());
  return socket_.transact(request);
}

int RouteSocket::add_address(int index, const Prefix& address) {
  return change_address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, address);
}

int RouteSocket::remove_address(int index, const Prefix& address) {
  return change_address(RTM_DELADDR, 0, index, address);
}

std::vector<Prefix> RouteSocket::routes(int index) {
  const auto build = [index](unsigned char family) {
    NetlinkRequest request(RTM_GETROUTE, NLM_F_DUMP);
    rtmsg fixed{};
    fixed.rtm_family = family;
    fixed.rtm_table = RT_TABLE_MAIN;
    request.header(fixed);
    request.u32(RTA_OIF, static_cast<unsigned>(index));
    return request;
  };
  return list(
      build, [index](nlmsghdr& message) { return parse_route(message, index); }, "list routes");
}

int RouteSocket::change_route(int type, int flags, int index, const Prefix& route) {
  NetlinkRequest request(type, flags);
  rtmsg fixed{};
  fixed.rtm_family = family_of(route);
  fixed.rtm_dst_len = static_cast<std::uint8_t>(route.length());
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = RTPROT_STATIC;
  fixed.rtm_scope = route.address().is_v4() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  fixed.rtm_type = RTN_UNICAST;
  request.header(fixed);
  request.address(RTA_DST, route.network().address());
  request.u32(RTA_OIF, static_cast<unsigned>(index));
  return socket_.transact(request);
}

int RouteSocket::add_route(int index, const Prefix& route) {
  return change_route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, index, route);
}

int RouteSocket::remove_route(int index, const Prefix& route) {
  return change_route(RTM_DELROUTE, 0, index, route);
}

}  // namespace ipoverbs::tun
