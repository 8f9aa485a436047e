#include "tun/netlink.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

// IN6_ADDR_GEN_MODE_NONE of <linux/if_link.h>, IFLA_TUN_TYPE's value of <linux/if_tun.h>, under
// names that do not clash with other headers' idea of these headers.
constexpr std::uint8_t kTypeTap = 2;

struct FreeCallbacks {
  void operator()(nl_cb* cb) const noexcept { ::nl_cb_put(cb); }
};
using Callbacks = std::unique_ptr<nl_cb, FreeCallbacks>;

Callbacks make_callbacks() {
  Callbacks cb(::nl_cb_alloc(NL_CB_DEFAULT));
  if (!cb) throw SystemError(ENOMEM, "allocate netlink callbacks");
  return cb;
}

std::unique_ptr<nl_sock, void (*)(nl_sock*)> connect_route_socket() {
  std::unique_ptr<nl_sock, void (*)(nl_sock*)> socket(::nl_socket_alloc(), ::nl_socket_free);
  if (!socket) throw SystemError(ENOMEM, "allocate a netlink socket");
  if (::nl_connect(socket.get(), NETLINK_ROUTE) < 0) {
    throw SystemError(errno, "connect a netlink socket");
  }
  return socket;
}

template <std::size_t N>
using Attributes = std::array<nlattr*, N>;

// The attributes of `message` behind a fixed part of `header` bytes, by type.
template <std::size_t N>
Attributes<N> parse_attributes(nlmsghdr& message, std::size_t header) {
  Attributes<N> attributes{};
  ::nlmsg_parse(&message, static_cast<int>(header), attributes.data(), static_cast<int>(N) - 1,
                nullptr);
  return attributes;
}

template <std::size_t N>
Attributes<N> parse_nested(nlattr* parent) {
  Attributes<N> attributes{};
  if (parent != nullptr) {
    ::nla_parse_nested(attributes.data(), static_cast<int>(N) - 1, parent, nullptr);
  }
  return attributes;
}

std::uint32_t get_u32(const nlattr* attribute) {
  return attribute != nullptr ? ::nla_get_u32(attribute) : 0;
}

std::uint8_t get_u8(const nlattr* attribute) {
  return attribute != nullptr ? ::nla_get_u8(attribute) : std::uint8_t{0};
}

std::span<const std::byte> payload(const nlattr* attribute) {
  return {static_cast<const std::byte*>(::nla_data(attribute)),
          static_cast<std::size_t>(::nla_len(attribute))};
}

// The address in `attribute`, nullopt if it is missing or no address.
std::optional<IpAddress> get_address(const nlattr* attribute) {
  if (attribute == nullptr) return std::nullopt;
  const auto bytes = payload(attribute);
  if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
  return IpAddress::from_bytes(bytes);
}

template <class T>
T get_header(nlmsghdr& message) {
  T header{};
  std::memcpy(&header, ::nlmsg_data(&message), sizeof header);
  return header;
}

Statistics get_statistics(const nlattr* attribute) {
  if (attribute == nullptr) return {};
  rtnl_link_stats64 s{};
  const auto bytes = payload(attribute);
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

LinkInfo parse_link(nlmsghdr& message) {
  const auto header = get_header<ifinfomsg>(message);
  const auto link = parse_attributes<IFLA_MAX + 1>(message, sizeof header);
  const auto info = parse_nested<IFLA_INFO_MAX + 1>(link[IFLA_LINKINFO]);
  LinkInfo result;
  result.index = header.ifi_index;
  result.up = (header.ifi_flags & IFF_UP) != 0;
  result.mtu = get_u32(link[IFLA_MTU]);
  result.queue_length = get_u32(link[IFLA_TXQLEN]);
  result.gso_max_size = get_u32(link[IFLA_GSO_MAX_SIZE]);
  result.gso_max_segments = get_u32(link[IFLA_GSO_MAX_SEGS]);
  result.statistics = get_statistics(link[IFLA_STATS64]);
  if (info[IFLA_INFO_KIND] != nullptr) result.kind = ::nla_get_string(info[IFLA_INFO_KIND]);
  if (result.kind == "tun") {
    const auto tun = parse_nested<IFLA_TUN_MAX + 1>(info[IFLA_INFO_DATA]);
    result.tun = TunInfo{
        .tap = get_u8(tun[IFLA_TUN_TYPE]) == kTypeTap,
        .persistent = get_u8(tun[IFLA_TUN_PERSIST]) != 0,
        .multi_queue = get_u8(tun[IFLA_TUN_MULTI_QUEUE]) != 0,
        .queues = get_u32(tun[IFLA_TUN_NUM_QUEUES]) + get_u32(tun[IFLA_TUN_NUM_DISABLED_QUEUES])};
  }
  return result;
}

}  // namespace

// A request under construction. Attributes that do not fit would be a programmer's error: a
// message has room for a page.
struct RouteSocket::Message {
  Message(int type, int flags) : message(::nlmsg_alloc_simple(type, flags), ::nlmsg_free) {
    if (!message) throw SystemError(ENOMEM, "allocate a netlink message");
  }
  template <class T>
  void header(T fixed) {
    must(::nlmsg_append(message.get(), &fixed, sizeof fixed, NLMSG_ALIGNTO));
  }
  void u8(int type, std::uint8_t value) { must(::nla_put_u8(message.get(), type, value)); }
  void u32(int type, std::uint32_t value) { must(::nla_put_u32(message.get(), type, value)); }
  void string(int type, const std::string& value) {
    must(::nla_put_string(message.get(), type, value.c_str()));
  }
  void address(int type, const IpAddress& value) {
    const auto bytes = value.bytes();
    must(::nla_put(message.get(), type, static_cast<int>(bytes.size()), bytes.data()));
  }
  nlattr* begin(int type) { return ::nla_nest_start(message.get(), type); }
  void end(nlattr* nest) { ::nla_nest_end(message.get(), nest); }

  std::unique_ptr<nl_msg, void (*)(nl_msg*)> message;

 private:
  static void must(int result) {
    if (result < 0) throw SystemError(EMSGSIZE, "build a netlink message");
  }
};

RouteSocket::RouteSocket() : socket_(connect_route_socket().release()) {}

// Sends a request and waits until the kernel has acknowledged or refused it, or, for a dump, has
// told everything.
int RouteSocket::transact(const Message& request, const Handler& on_answer) {
  struct Outcome {
    const Handler& on_answer;
    int error = 0;
    bool done = false;
    std::exception_ptr thrown;
  } outcome{on_answer, 0, false, nullptr};
  const auto done = [](nl_msg*, void* arg) {
    static_cast<Outcome*>(arg)->done = true;
    return static_cast<int>(NL_STOP);
  };
  const Callbacks cb = make_callbacks();
  ::nl_cb_set(cb.get(), NL_CB_ACK, NL_CB_CUSTOM, done, &outcome);
  ::nl_cb_set(cb.get(), NL_CB_FINISH, NL_CB_CUSTOM, done, &outcome);
  ::nl_cb_err(
      cb.get(), NL_CB_CUSTOM,
      [](sockaddr_nl*, nlmsgerr* error, void* arg) {
        static_cast<Outcome*>(arg)->error = -error->error;
        static_cast<Outcome*>(arg)->done = true;
        return static_cast<int>(NL_STOP);
      },
      &outcome);
  ::nl_cb_set(
      cb.get(), NL_CB_VALID, NL_CB_CUSTOM,
      [](nl_msg* message, void* arg) {
        auto& self = *static_cast<Outcome*>(arg);
        try {
          if (self.on_answer && !self.thrown) self.on_answer(*::nlmsg_hdr(message));
        } catch (...) {  // must not cross the C library
          self.thrown = std::current_exception();
        }
        return static_cast<int>(NL_OK);
      },
      &outcome);
  if (::nl_send_auto(socket_.get(), request.message.get()) < 0) {
    throw SystemError(errno, "send a netlink request");
  }
  while (!outcome.done) {
    if (::nl_recvmsgs(socket_.get(), cb.get()) < 0 && !outcome.done) {
      throw SystemError(errno, "receive a netlink answer");
    }
  }
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  return outcome.error;
}

std::optional<LinkInfo> RouteSocket::get_link(const Message& request, const std::string& what) {
  std::optional<LinkInfo> found;
  const int error = transact(request, [&](nlmsghdr& message) { found = parse_link(message); });
  if (error != 0 && error != ENODEV) {
    throw SystemError(error, fmt::format("ask for interface {}", what));
  }
  return found;
}

std::optional<LinkInfo> RouteSocket::find_link(const std::string& name) {
  Message request(RTM_GETLINK, 0);
  request.header(ifinfomsg{});
  request.string(IFLA_IFNAME, name);
  return get_link(request, name);
}

LinkInfo RouteSocket::link(int index) {
  Message request(RTM_GETLINK, 0);
  ifinfomsg header{};
  header.ifi_index = index;
  request.header(header);
  auto found = get_link(request, fmt::format("number {}", index));
  if (!found) throw SystemError(ENODEV, fmt::format("ask for interface number {}", index));
  return *found;
}

int RouteSocket::change_link(int index, const LinkChange& change) {
  Message request(RTM_NEWLINK, 0);
  ifinfomsg header{};
  header.ifi_index = index;
  if (change.up) {
    header.ifi_change = IFF_UP;
    header.ifi_flags = *change.up ? unsigned{IFF_UP} : 0U;
  }
  request.header(header);
  if (change.mtu) request.u32(IFLA_MTU, *change.mtu);
  if (change.queue_length) request.u32(IFLA_TXQLEN, *change.queue_length);
  if (change.gso_max_size) request.u32(IFLA_GSO_MAX_SIZE, *change.gso_max_size);
  if (change.gso_max_segments) request.u32(IFLA_GSO_MAX_SEGS, *change.gso_max_segments);
  if (change.no_ipv6_address_generation) {
    nlattr* const families = request.begin(IFLA_AF_SPEC);
    nlattr* const inet6 = request.begin(AF_INET6);
    request.u8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
    request.end(inet6);
    request.end(families);
  }
  return transact(request);
}

std::vector<Prefix> RouteSocket::addresses(int index) {
  std::vector<Prefix> found;
  Message request(RTM_GETADDR, NLM_F_DUMP);
  request.header(ifaddrmsg{});
  const int error = transact(request, [&](nlmsghdr& message) {
    const auto header = get_header<ifaddrmsg>(message);
    if (header.ifa_index != static_cast<unsigned>(index)) return;
    const auto attributes = parse_attributes<IFA_MAX + 1>(message, sizeof header);
    // Of a point-to-point address, IFA_ADDRESS is the far end.
    auto address = get_address(attributes[IFA_LOCAL]);
    if (!address) address = get_address(attributes[IFA_ADDRESS]);
    if (address && header.ifa_prefixlen <= address->bits()) {
      found.emplace_back(*address, header.ifa_prefixlen);
    }
  });
  if (error != 0) throw SystemError(error, "list addresses");
  return found;
}

int RouteSocket::change_address(int type, int flags, int index, const Prefix& address) {
  Message request(type, flags);
  ifaddrmsg header{};
  header.ifa_family = address.address().is_v4() ? AF_INET : AF_INET6;
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.length());
  header.ifa_flags = address.address().is_v4() ? 0 : IFA_F_NODAD;
  header.ifa_index = static_cast<unsigned>(index);
  request.header(header);
  request.address(IFA_LOCAL, address.address());
  request.address(IFA_ADDRESS, address.address());
  return transact(request);
}

int RouteSocket::add_address(int index, const Prefix& address) {
  return change_address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, address);
}

int RouteSocket::remove_address(int index, const Prefix& address) {
  return change_address(RTM_DELADDR, 0, index, address);
}

std::vector<Prefix> RouteSocket::routes(int index) {
  std::vector<Prefix> found;
  Message request(RTM_GETROUTE, NLM_F_DUMP);
  request.header(rtmsg{});
  const int error = transact(request, [&](nlmsghdr& message) {
    const auto header = get_header<rtmsg>(message);
    const auto attributes = parse_attributes<RTA_MAX + 1>(message, sizeof header);
    if (header.rtm_table != RT_TABLE_MAIN || header.rtm_type != RTN_UNICAST ||
        (header.rtm_flags & RTM_F_CLONED) != 0 ||
        get_u32(attributes[RTA_OIF]) != static_cast<unsigned>(index)) {
      return;
    }
    const auto any = header.rtm_family == AF_INET ? IpAddress{} : IpAddress::v6({});
    const auto address = get_address(attributes[RTA_DST]).value_or(any);
    if (header.rtm_dst_len <= address.bits()) found.emplace_back(address, header.rtm_dst_len);
  });
  if (error != 0) throw SystemError(error, "list routes");
  return found;
}

int RouteSocket::change_route(int type, int flags, int index, const Prefix& route) {
  Message request(type, flags);
  rtmsg header{};
  header.rtm_family = route.address().is_v4() ? AF_INET : AF_INET6;
  header.rtm_dst_len = static_cast<std::uint8_t>(route.length());
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = route.address().is_v4() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_UNICAST;
  request.header(header);
  request.address(RTA_DST, route.network().address());
  request.u32(RTA_OIF, static_cast<unsigned>(index));
  return transact(request);
}

int RouteSocket::add_route(int index, const Prefix& route) {
  return change_route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, index, route);
}

int RouteSocket::remove_route(int index, const Prefix& route) {
  return change_route(RTM_DELROUTE, 0, index, route);
}

LinkWatch::LinkWatch() : socket_(connect_route_socket().release()) {
  // What arrives are notifications, which answer no request of ours.
  ::nl_socket_disable_seq_check(socket_.get());
  if (::nl_socket_add_membership(socket_.get(), RTNLGRP_LINK) < 0 ||
      ::nl_socket_set_nonblocking(socket_.get()) < 0) {
    throw SystemError(errno, "listen to link changes");
  }
}

int LinkWatch::fd() const { return ::nl_socket_get_fd(socket_.get()); }

LinkWatch::News LinkWatch::read(int index) {
  struct Reading {
    int index;
    News news;
  } reading{index, {}};
  const Callbacks cb = make_callbacks();
  ::nl_cb_set(
      cb.get(), NL_CB_VALID, NL_CB_CUSTOM,
      [](nl_msg* message, void* arg) {
        auto& [wanted, news] = *static_cast<Reading*>(arg);
        nlmsghdr& header = *::nlmsg_hdr(message);
        const auto link = get_header<ifinfomsg>(header);
        // Bridges speak of their ports with this type of message and a family of their own.
        if (link.ifi_index != wanted || link.ifi_family != AF_UNSPEC) {
          return static_cast<int>(NL_OK);
        }
        if (header.nlmsg_type == RTM_DELLINK) news.removed = true;
        if (header.nlmsg_type == RTM_NEWLINK) {
          news.up = (link.ifi_flags & IFF_UP) != 0;
          news.went_down |= !*news.up;
        }
        return static_cast<int>(NL_OK);
      },
      &reading);
  for (;;) {
    const int result = ::nl_recvmsgs(socket_.get(), cb.get());
    if (result >= 0) continue;
    if (result == -NLE_AGAIN) break;
    if (result != -NLE_INTR) {
      reading.news.lost = true;
      if (result != -NLE_NOMEM) break;
    }
  }
  return reading.news;
}

}  // namespace ipoverbs::tun
