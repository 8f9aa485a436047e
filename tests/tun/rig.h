// What the tests of Interface share.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "core/ip.h"
#include "core/log.h"
#include "tests/tun/records.h"
#include "tun/config.h"
#include "tun/driver.h"
#include "tun/netlink.h"

namespace ipoverbs::tun {

[[nodiscard]] Prefix prefix(std::string_view text);

// "t0": 10.77.0.1/24, fd77::1/64, routes to 10.78.0.0/16 and fd78::/64, MTU 65520, two queues.
[[nodiscard]] Config test_config();

// What create() says to the user, with UsageError, about `config`; "" if it takes it.
[[nodiscard]] std::string usage_error(const Config& config);

// A TUN that stays without a descriptor, owned by user 0, in the calling thread's namespace.
void make_persistent_tun(const std::string& name, QueueMode mode);

// ip link del, ip link set up | down, in the calling thread's namespace. Throw SystemError.
void delete_link(const std::string& name);
void set_link_up(const std::string& name, bool up);

// How many descriptors this process has open.
[[nodiscard]] std::size_t open_descriptors();

// A UDP socket in the calling thread's namespace.
class UdpSocket {
 public:
  // Bound to `address` and `port`.
  UdpSocket(std::string_view address, std::uint16_t port);
  // Sends `size` bytes to `address`, port 9.
  void send_to(std::string_view address, std::size_t size) const;
  // The sizes of the datagrams that have arrived, in order.
  [[nodiscard]] std::vector<std::size_t> received_sizes() const;

 private:
  Fd fd_;
};

// The next record in a queue, if there is one.
[[nodiscard]] std::optional<Record> read_record(int queue);
// Records that have to do with `protocol` (IPPROTO_*), read until the queues are empty.
[[nodiscard]] std::vector<Record> read_all(std::span<const int> queues, std::uint8_t protocol);

// write(2) of a record: 0 or an errno value.
[[nodiscard]] int write_record(int queue, const Record& record);

}  // namespace ipoverbs::tun
