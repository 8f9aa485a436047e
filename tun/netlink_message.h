// Netlink messages and sockets: the thin layer over libnl-3 on which netlink.h and link_watch.h
// stand.
#pragma once

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/ip.h"

namespace ipoverbs::tun {

// A request under construction. Attributes that do not fit are a programmer's error: a message has
// room for a page.
class NetlinkRequest {
 public:
  // `type`: RTM_*; `flags`: NLM_F_* beside those that every request has.
  NetlinkRequest(int type, int flags);

  // The fixed part, first of all.
  template <class T>
  void header(T fixed) {
    must(::nlmsg_append(message_.get(), &fixed, sizeof fixed, NLMSG_ALIGNTO));
  }
  void u8(int type, std::uint8_t value);
  void u32(int type, std::uint32_t value);
  void string(int type, const std::string& value);
  void address(int type, const IpAddress& value);
  [[nodiscard]] nlattr* begin(int type) { return ::nla_nest_start(message_.get(), type); }
  void end(nlattr* nest) { ::nla_nest_end(message_.get(), nest); }

  [[nodiscard]] nl_msg* get() const { return message_.get(); }

 private:
  static void must(int result);
  struct Free {
    void operator()(nl_msg* message) const noexcept { ::nlmsg_free(message); }
  };
  std::unique_ptr<nl_msg, Free> message_;
};

// A socket of NETLINK_ROUTE in the network namespace of the thread that made it. One thread at a
// time.
class NetlinkSocket {
 public:
  using Handler = std::function<void(nlmsghdr&)>;

  // Throws SystemError.
  NetlinkSocket();

  // Sends a request, calls `on_answer` for each message that the kernel tells, and returns when it
  // has acknowledged, refused or told everything: an errno value, 0 for success, EINTR if what was
  // listed changed meanwhile. Throws SystemError if there is no talking to the kernel, and what
  // `on_answer` throws.
  int transact(const NetlinkRequest& request, const Handler& on_answer = {});

  // Subscribes to the notifications of `group` (RTNLGRP_*) and makes the socket nonblocking. From
  // then on it is for receive() only. Throws SystemError.
  void listen(int group);
  // Calls `on_message` for each message that has arrived; does not wait. False if messages were
  // lost.
  bool receive(const Handler& on_message);
  [[nodiscard]] int fd() const { return ::nl_socket_get_fd(socket_.get()); }

 private:
  struct Free {
    void operator()(nl_sock* socket) const noexcept { ::nl_socket_free(socket); }
  };
  std::unique_ptr<nl_sock, Free> socket_;
};

// Reading of messages. Attributes that are missing read as zero.

// The fixed part of `message`, zero-filled if the kernel sent less.
template <class T>
[[nodiscard]] T fixed_part(const nlmsghdr& message) {
  T fixed{};
  const auto size = static_cast<std::size_t>(::nlmsg_datalen(&message));
  std::memcpy(&fixed, ::nlmsg_data(&message), std::min(size, sizeof fixed));
  return fixed;
}

template <std::size_t N>
using Attributes = std::array<nlattr*, N>;

// The attributes of `message` behind its fixed part of type T, by number.
template <class T, std::size_t N>
[[nodiscard]] Attributes<N> attributes_of(nlmsghdr& message) {
  Attributes<N> attributes{};
  ::nlmsg_parse(&message, static_cast<int>(sizeof(T)), attributes.data(), static_cast<int>(N) - 1,
                nullptr);
  return attributes;
}

template <std::size_t N>
[[nodiscard]] Attributes<N> nested_in(nlattr* parent) {
  Attributes<N> attributes{};
  if (parent != nullptr) {
    ::nla_parse_nested(attributes.data(), static_cast<int>(N) - 1, parent, nullptr);
  }
  return attributes;
}

[[nodiscard]] std::span<const std::byte> payload_of(const nlattr* attribute);
[[nodiscard]] std::uint8_t get_u8(const nlattr* attribute);
[[nodiscard]] std::uint32_t get_u32(const nlattr* attribute);
// nullopt if `attribute` is missing or no address.
[[nodiscard]] std::optional<IpAddress> get_address(const nlattr* attribute);

}  // namespace ipoverbs::tun
