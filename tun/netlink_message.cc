#include "tun/netlink_message.h"

#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

// What the callbacks of one exchange work on. Exceptions wait here until libnl has returned.
struct Exchange {
  const NetlinkSocket::Handler& on_message;
  int error = 0;
  bool done = false;
  std::exception_ptr thrown = nullptr;
};

int on_valid(nl_msg* message, void* arg) {
  auto& exchange = *static_cast<Exchange*>(arg);
  try {
    if (exchange.on_message && !exchange.thrown) exchange.on_message(*::nlmsg_hdr(message));
  } catch (...) {
    exchange.thrown = std::current_exception();
  }
  return NL_OK;
}

int on_end(nl_msg* /*message*/, void* arg) {
  static_cast<Exchange*>(arg)->done = true;
  return NL_STOP;
}

int on_interrupted(nl_msg* /*message*/, void* arg) {
  static_cast<Exchange*>(arg)->error = EINTR;
  return NL_OK;
}

int on_any_sequence(nl_msg* /*message*/, void* /*arg*/) { return NL_OK; }

int on_error(sockaddr_nl* /*sender*/, nlmsgerr* refusal, void* arg) {
  static_cast<Exchange*>(arg)->error = -refusal->error;
  static_cast<Exchange*>(arg)->done = true;
  return NL_STOP;
}

struct FreeCallbacks {
  void operator()(nl_cb* cb) const noexcept { ::nl_cb_put(cb); }
};

std::unique_ptr<nl_cb, FreeCallbacks> make_callbacks(Exchange& exchange) {
  std::unique_ptr<nl_cb, FreeCallbacks> cb(::nl_cb_alloc(NL_CB_DEFAULT));
  if (!cb) throw SystemError(ENOMEM, "allocate netlink callbacks");
  ::nl_cb_set(cb.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &exchange);
  ::nl_cb_set(cb.get(), NL_CB_ACK, NL_CB_CUSTOM, on_end, &exchange);
  ::nl_cb_set(cb.get(), NL_CB_FINISH, NL_CB_CUSTOM, on_end, &exchange);
  ::nl_cb_set(cb.get(), NL_CB_DUMP_INTR, NL_CB_CUSTOM, on_interrupted, &exchange);
  ::nl_cb_err(cb.get(), NL_CB_CUSTOM, on_error, &exchange);
  return cb;
}

}  // namespace

NetlinkRequest::NetlinkRequest(int type, int flags) : message_(::nlmsg_alloc_simple(type, flags)) {
  if (!message_) throw SystemError(ENOMEM, "allocate a netlink message");
}

void NetlinkRequest::must(int result) {
  if (result < 0) throw SystemError(EMSGSIZE, "build a netlink message");
}

void NetlinkRequest::u8(int type, std::uint8_t value) {
  must(::nla_put_u8(message_.get(), type, value));
}

void NetlinkRequest::u32(int type, std::uint32_t value) {
  must(::nla_put_u32(message_.get(), type, value));
}

void NetlinkRequest::string(int type, const std::string& value) {
  must(::nla_put_string(message_.get(), type, value.c_str()));
}

void NetlinkRequest::address(int type, const IpAddress& value) {
  const auto bytes = value.bytes();
  must(::nla_put(message_.get(), type, static_cast<int>(bytes.size()), bytes.data()));
}

NetlinkSocket::NetlinkSocket() : socket_(::nl_socket_alloc()) {
  if (!socket_) throw SystemError(ENOMEM, "allocate a netlink socket");
  if (::nl_connect(socket_.get(), NETLINK_ROUTE) < 0) {
    throw SystemError(errno, "connect a netlink socket");
  }
  // With strict checking (Linux 4.20) the kernel lists only what the request names, which on a
  // router spares us its whole table. Without it we leave out the rest ourselves.
  const int on = 1;
  ::setsockopt(fd(), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
}

int NetlinkSocket::transact(const NetlinkRequest& request, const Handler& on_answer) {
  Exchange exchange{.on_message = on_answer};
  const auto cb = make_callbacks(exchange);
  if (::nl_send_auto(socket_.get(), request.get()) < 0) {
    throw SystemError(errno, "send a netlink request");
  }
  while (!exchange.done) {
    if (::nl_recvmsgs(socket_.get(), cb.get()) < 0 && !exchange.done) {
      throw SystemError(errno, "receive a netlink answer");
    }
  }
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  return exchange.error;
}

void NetlinkSocket::listen(int group) {
  if (::nl_socket_add_membership(socket_.get(), group) < 0 ||
      ::nl_socket_set_nonblocking(socket_.get()) < 0) {
    throw SystemError(errno, "listen to netlink notifications");
  }
}

bool NetlinkSocket::receive(const Handler& on_message) {
  Exchange exchange{.on_message = on_message};
  const auto cb = make_callbacks(exchange);
  // What arrives answers no request: its sequence number is nobody's.
  ::nl_cb_set(cb.get(), NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_any_sequence, nullptr);
  bool complete = true;
  for (;;) {
    const int result = ::nl_recvmsgs(socket_.get(), cb.get());
    if (result >= 0 || result == -NLE_INTR) continue;
    if (result == -NLE_AGAIN) break;
    complete = false;
    if (result != -NLE_NOMEM) break;  // ENOBUFS: the socket overflowed, and there is more to read
  }
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  return complete;
}

std::span<const std::byte> payload_of(const nlattr* attribute) {
  return {static_cast<const std::byte*>(::nla_data(attribute)),
          static_cast<std::size_t>(::nla_len(attribute))};
}

std::uint8_t get_u8(const nlattr* attribute) {
  return attribute != nullptr ? ::nla_get_u8(attribute) : std::uint8_t{0};
}

std::uint32_t get_u32(const nlattr* attribute) {
  return attribute != nullptr ? ::nla_get_u32(attribute) : 0;
}

std::optional<IpAddress> get_address(const nlattr* attribute) {
  if (attribute == nullptr) return std::nullopt;
  const auto bytes = payload_of(attribute);
  if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
  return IpAddress::from_bytes(bytes);
}

}  // namespace ipoverbs::tun
