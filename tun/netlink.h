// The few requests of rtnetlink(7) that a TUN interface needs.
//
// The messages are built from raw attributes: libnl-route 3.7 knows neither gso_max_size nor what
// the kernel tells about a TUN, and its error codes lose the errno that decides what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ip.h"
#include "tun/netlink_message.h"
#include "tun/statistics.h"

namespace ipoverbs::tun {

// What the kernel tells about a TUN (IFLA_INFO_DATA of kind "tun", tun_fill_info()).
struct TunInfo {
  bool tap = false;
  bool persistent = false;
  bool multi_queue = false;
  // Attached, disabled ones included; told only if multi_queue.
  std::uint32_t queues = 0;
};

struct LinkInfo {
  int index = 0;
  std::string kind;  // "" for hardware
  bool up = false;   // IFF_UP: wanted up by the administrator
  std::uint32_t mtu = 0;
  std::uint32_t queue_length = 0;
  std::uint32_t gso_max_size = 0;
  std::uint32_t gso_max_segments = 0;
  // IN6_ADDR_GEN_MODE_*; none where the interface has no IPv6.
  std::optional<std::uint8_t> ipv6_address_generation;
  std::optional<TunInfo> tun;
  Statistics statistics;
};

// What to change; what is empty stays as it is.
struct LinkChange {
  std::optional<bool> up = std::nullopt;
  std::optional<std::uint32_t> mtu = std::nullopt;
  std::optional<std::uint32_t> queue_length = std::nullopt;
  std::optional<std::uint32_t> gso_max_size = std::nullopt;
  std::optional<std::uint32_t> gso_max_segments = std::nullopt;
  std::optional<std::uint8_t> ipv6_address_generation = std::nullopt;
};

// IN6_ADDR_GEN_MODE_NONE of <linux/if_link.h>: the kernel makes no IPv6 address of its own.
inline constexpr std::uint8_t kNoAddressGeneration = 1;

// Requests in the network namespace of the thread that made it. One thread at a time. Each waits
// for the kernel's answer. Functions that return int return an errno value, 0 for success; the
// others throw SystemError.
class RouteSocket {
 public:
  [[nodiscard]] std::optional<LinkInfo> find_link(const std::string& name);
  [[nodiscard]] LinkInfo link(int index);
  [[nodiscard]] int change_link(int index, const LinkChange& change);

  // The addresses of the interface, each with its prefix length.
  [[nodiscard]] std::vector<Prefix> addresses(int index);
  [[nodiscard]] int add_address(int index, const Prefix& address);
  [[nodiscard]] int remove_address(int index, const Prefix& address);

  // The unicast routes of the main table through the interface.
  [[nodiscard]] std::vector<Prefix> routes(int index);
  [[nodiscard]] int add_route(int index, const Prefix& route);
  [[nodiscard]] int remove_route(int index, const Prefix& route);

 private:
  using Build = std::function<NetlinkRequest(unsigned char family)>;
  using Parse = std::function<std::optional<Prefix>(nlmsghdr&)>;

  std::optional<LinkInfo> get_link(const NetlinkRequest& request, const std::string& what);
  std::vector<Prefix> list(const Build& build, const Parse& parse, const char* what);
  int change_address(int type, int flags, int index, const Prefix& address);
  int change_route(int type, int flags, int index, const Prefix& route);

  NetlinkSocket socket_;
};

}  // namespace ipoverbs::tun
