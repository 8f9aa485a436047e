#include "tests/tun/rig.h"

#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

#include "core/error.h"
#include "tun/interface.h"

namespace ipoverbs::tun {

Prefix prefix(std::string_view text) { return Prefix::parse(text).value(); }

Config test_config() {
  Config config;
  config.name = "t0";
  config.queues = 2;
  config.addresses = {prefix("10.77.0.1/24"), prefix("fd77::1/64")};
  config.routes = {prefix("10.78.0.0/16"), prefix("fd78::/64")};
  return config;
}

std::string usage_error(const Config& config) {
  const auto logger = make_null_logger();
  try {
    const Interface interface = Interface::create(config, *logger);
    return {};
  } catch (const UsageError& e) {
    return e.what();
  }
}

void make_persistent_tun(const std::string& name, QueueMode mode) {
  const Fd queue = open_queue(name, mode, Attach::Create);
  if (::ioctl(queue.get(), TUNSETPERSIST, 1UL) != 0 ||
      ::ioctl(queue.get(), TUNSETOWNER, 0UL) != 0) {
    throw SystemError(errno, "make a persistent TUN");
  }
}

void delete_link(const std::string& name) {
  NetlinkRequest request(RTM_DELLINK, 0);
  ifinfomsg fixed{};
  fixed.ifi_index = RouteSocket().find_link(name).value().index;
  request.header(fixed);
  if (const int error = NetlinkSocket().transact(request); error != 0) {
    throw SystemError(error, "delete a link");
  }
}

void set_link_up(const std::string& name, bool up) {
  RouteSocket socket;
  const int error = socket.change_link(socket.find_link(name).value().index, {.up = up});
  if (error != 0) throw SystemError(error, "bring a link up or down");
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

UdpSocket::UdpSocket(std::string_view address, std::uint16_t port) {
  const Endpoint endpoint{IpAddress::parse(address).value(), port, 0};
  const sockaddr_storage storage = endpoint.to_sockaddr();
  fd_ = Fd(::socket(storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_ || ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&storage), sizeof storage) != 0) {
    throw SystemError(errno, "bind a UDP socket");
  }
}

void UdpSocket::send_to(std::string_view address, std::size_t size) const {
  const Endpoint endpoint{IpAddress::parse(address).value(), 9, 0};
  const sockaddr_storage storage = endpoint.to_sockaddr();
  const std::vector<std::byte> payload(size);
  if (::sendto(fd_.get(), payload.data(), size, 0, reinterpret_cast<const sockaddr*>(&storage),
               sizeof storage) < 0) {
    throw SystemError(errno, "send a datagram");
  }
}

std::vector<std::size_t> UdpSocket::received_sizes() const {
  std::vector<std::size_t> sizes;
  std::vector<std::byte> buffer(65536);
  for (;;) {
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0) return sizes;
    sizes.push_back(static_cast<std::size_t>(size));
  }
}

std::optional<Record> read_record(int queue) {
  std::vector<std::byte> buffer(kMaxRecord);
  const ssize_t size = ::read(queue, buffer.data(), buffer.size());
  if (size < static_cast<ssize_t>(sizeof(VirtioNetHeader))) return std::nullopt;
  return Record{load<VirtioNetHeader>(buffer),
                {buffer.begin() + sizeof(VirtioNetHeader), buffer.begin() + size}};
}

std::vector<Record> read_all(std::span<const int> queues, std::uint8_t protocol) {
  std::vector<Record> records;
  for (const int queue : queues) {
    while (auto record = read_record(queue)) {
      if (find_transport(record->packet).protocol == protocol) {
        records.push_back(std::move(*record));
      }
    }
  }
  return records;
}

int write_record(int queue, const Record& record) {
  const std::vector<std::byte> bytes = record.bytes();
  return ::write(queue, bytes.data(), bytes.size()) < 0 ? errno : 0;
}

}  // namespace ipoverbs::tun
