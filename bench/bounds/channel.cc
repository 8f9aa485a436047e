#include "bench/bounds/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "core/clock.h"
#include "core/error.h"

namespace ipoverbs::bounds {

namespace {

using namespace std::chrono_literals;

// The other process is started at about the same time.
constexpr auto kPatience = 10s;

// What the listener hands over, in this order.
struct Parts {
  Fd memory;
  std::array<Fd, 2> bells;  // [0] the listener's
};
constexpr std::size_t kParts = 3;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw UsageError(fmt::format("{}: a UNIX socket's path is shorter", path));
  }
  std::ranges::copy(path, address.sun_path);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Fd new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) throw SystemError(errno, "make a UNIX socket");
  return fd;
}

Fd accept_at(const std::string& path) {
  const Fd fd = new_socket();
  const sockaddr_un address = address_of(path);
  ::unlink(path.c_str());  // of a run that was killed
  if (::bind(fd.get(), generic(address), sizeof address) < 0 || ::listen(fd.get(), 1) < 0) {
    throw SystemError(errno, fmt::format("listen at {}", path));
  }
  pollfd event{fd.get(), POLLIN, 0};
  const int ready =
      ::poll(&event, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
  Fd peer(ready > 0 ? ::accept4(fd.get(), nullptr, nullptr, SOCK_CLOEXEC) : -1);
  const int error = ready == 0 ? ETIMEDOUT : errno;
  ::unlink(path.c_str());
  if (!peer) throw SystemError(error, fmt::format("wait at {} for the other process", path));
  return peer;
}

Fd connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const TimePoint end = monotonic_now() + kPatience;
  Fd fd = new_socket();
  while (::connect(fd.get(), generic(address), sizeof address) < 0) {
    const int error = errno;
    if ((error != ENOENT && error != ECONNREFUSED) || monotonic_now() >= end) {
      throw SystemError(error, fmt::format("connect to {}", path));
    }
    std::this_thread::sleep_for(10ms);
  }
  return fd;
}

Parts make_parts() {
  Parts parts;
  parts.memory = Fd(::memfd_create("ring2", MFD_CLOEXEC));
  if (!parts.memory || ::ftruncate(parts.memory.get(), sizeof(SharedState)) < 0) {
    throw SystemError(errno, fmt::format("make {} bytes of shared memory", sizeof(SharedState)));
  }
  for (Fd& bell : parts.bells) {
    bell = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!bell) throw SystemError(errno, "create an eventfd");
  }
  return parts;
}

// A message of one byte with room for the descriptors of Parts (unix(7), SCM_RIGHTS).
struct PartsMessage {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kParts * sizeof(int))> control{};
  msghdr header{};

  PartsMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  PartsMessage(const PartsMessage&) = delete;
  PartsMessage& operator=(const PartsMessage&) = delete;
};

void send_parts(const Fd& peer, const Parts& parts) {
  const std::array<int, kParts> numbers{parts.memory.get(), parts.bells[0].get(),
                                        parts.bells[1].get()};
  PartsMessage message;
  cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof numbers);
  std::memcpy(CMSG_DATA(rights), numbers.data(), sizeof numbers);
  if (::sendmsg(peer.get(), &message.header, MSG_NOSIGNAL) < 0) {
    throw SystemError(errno, "hand over the shared memory");
  }
}

Parts receive_parts(const Fd& peer) {
  PartsMessage message;
  const ssize_t n = ::recvmsg(peer.get(), &message.header, MSG_CMSG_CLOEXEC);
  const cmsghdr* rights = n > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  std::array<int, kParts> numbers{};
  if (rights == nullptr || rights->cmsg_len != CMSG_LEN(sizeof numbers)) {
    throw SystemError(n < 0 ? errno : EPROTO, "take over the shared memory");
  }
  std::memcpy(numbers.data(), CMSG_DATA(rights), sizeof numbers);
  return {.memory = Fd(numbers[0]), .bells = {Fd(numbers[1]), Fd(numbers[2])}};
}

}  // namespace

Channel::Mapping::Mapping(const Fd& memory) {
  // Touched now, not by the first packets.
  void* at = ::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    memory.get(), 0);
  if (at == MAP_FAILED) throw SystemError(errno, "map the shared memory");
  bytes_ = {static_cast<std::byte*>(at), sizeof(SharedState)};
}

Channel::Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

SharedState* Channel::Mapping::operator->() const {
  return reinterpret_cast<SharedState*>(bytes_.data());
}

Channel::Channel(std::size_t me, Fd peer, const Fd& memory, Fd my_bell, Fd peer_bell)
    : me_(me),
      peer_(std::move(peer)),
      shared_(memory),
      my_bell_(std::move(my_bell)),
      peer_bell_(std::move(peer_bell)) {}

Channel Channel::listen(const std::string& path) {
  Fd peer = accept_at(path);
  Parts parts = make_parts();
  send_parts(peer, parts);
  return Channel(0, std::move(peer), parts.memory, std::move(parts.bells[0]),
                 std::move(parts.bells[1]));
}

Channel Channel::connect(const std::string& path) {
  Fd peer = connect_to(path);
  Parts parts = receive_parts(peer);
  return Channel(1, std::move(peer), parts.memory, std::move(parts.bells[1]),
                 std::move(parts.bells[0]));
}

void Channel::wake(Sleep least) noexcept {
  std::atomic<Sleep>& sleep = shared_->sleepers[1 - me_].sleep;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleep.load(std::memory_order_relaxed) < least) return;
  if (sleep.exchange(Sleep::Awake) != Sleep::Awake) peer_bell_.ring();
}

void Channel::fall_asleep(Sleep what) noexcept {
  shared_->sleepers[me_].sleep.store(what);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Channel::wake_up() noexcept { shared_->sleepers[me_].sleep.store(Sleep::Awake); }

}  // namespace ipoverbs::bounds
