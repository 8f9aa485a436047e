// The software device as the other end of rdma-core's ibv_rc_pingpong and ibv_srq_pingpong, which
// know no connection manager: they tell each other queue pair numbers and first PSNs over TCP.
//
//   interop_pingpong LOCAL serve|HOST [--queue-pairs N] [--size BYTES] [--exchanges N] [--shared]
//
// serve: waits for the tool to connect; HOST: connects to the tool. --shared speaks as
// ibv_srq_pingpong does: shared receives, and always kTableSize queue pairs in what is told.
// A line "LID:QPN:PSN:GID", hexadecimal and ended by a zero byte, says where to send to and which
// PSN will be sent first: the opposite of the connection manager's reference. Whoever connects
// speaks first, and says "done" at the end (libibverbs/examples/rc_pingpong.c).
//
// Exit status: 0 when all exchanges are done.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "verbs/soft/cm_types.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/soft_queues.h"

namespace ipoverbs::verbs::soft {
namespace {

constexpr std::uint16_t kTcpPort = 18515;
constexpr std::size_t kTableSize = 256;
constexpr std::size_t kLine = sizeof "0000:000000:000000:00000000000000000000000000000000";
constexpr std::uint32_t kReceives = 500;
constexpr std::uint64_t kSendId = 1;
constexpr std::uint64_t kReceiveId = 2;
constexpr Duration kPatience = std::chrono::seconds(40);

struct Options {
  IpAddress local;
  std::string host;  // empty: serve
  std::size_t queue_pairs = 1;
  std::uint32_t size = 4096;
  std::uint64_t exchanges = 1000;
  bool shared = false;
};

struct Place {
  QpNumber qp;
  Psn first;  // that it sends
  IpAddress address;
};

std::string line_of(const Place& place) {
  std::string line = fmt::format("0000:{:06x}:{:06x}:", place.qp.value(), place.first.value());
  for (const std::byte b : gid_of(place.address).bytes) {
    line += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  }
  return line;
}

std::uint32_t hex(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(fmt::format("not a hexadecimal number: '{}'", text));
  }
  return value;
}

Place parse_line(std::string_view line) {
  Gid gid;
  for (std::size_t i = 0; i < gid.bytes.size(); ++i) {
    gid.bytes.at(i) = static_cast<std::byte>(hex(line.substr(19 + 2 * i, 2)));
  }
  return {QpNumber(hex(line.substr(5, 6))), Psn(hex(line.substr(12, 6))), address_of(gid)};
}

// The TCP connection that places are told over.
class Telephone {
 public:
  explicit Telephone(const std::string& host) : calls_(!host.empty()) {
    if (calls_) {
      call(host);
    } else {
      answer();
    }
  }

  std::vector<Place> exchange(const std::vector<Place>& ours, std::size_t count) {
    if (calls_) say(ours, count);
    std::vector<Place> theirs = hear(count, ours.size());
    if (!calls_) say(ours, count);
    return theirs;
  }
  void finish() {
    std::array<char, sizeof "done"> word{"done"};
    if (calls_) {
      write_all(word);
    } else {
      read_all(word);
    }
  }

 private:
  static sockaddr_in address(const std::string& host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = std::bit_cast<std::uint16_t>(Be16(kTcpPort));
    if (!host.empty()) inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }
  void call(const std::string& host) {
    const sockaddr_in to = address(host);
    const TimePoint end = monotonic_now() + kPatience;
    while (monotonic_now() < end) {  // the tool may not listen yet
      fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return;
      ::poll(nullptr, 0, 100);
    }
    throw SystemError(errno, "connect to " + host);
  }
  void answer() {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in here = address({});
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::listen(listener.get(), 1) != 0) {
      throw SystemError(errno, "listen on TCP");
    }
    fmt::print("listening\n");
    fd_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd_) throw SystemError(errno, "accept on TCP");
  }
  void say(const std::vector<Place>& ours, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string text = line_of(i < ours.size() ? ours[i] : Place{});
      std::array<char, kLine> line{};
      text.copy(line.data(), line.size());
      write_all(line);
    }
  }
  std::vector<Place> hear(std::size_t count, std::size_t wanted) {
    std::vector<Place> theirs;
    for (std::size_t i = 0; i < count; ++i) {
      std::array<char, kLine> line{};
      read_all(line);
      if (i < wanted) theirs.push_back(parse_line({line.data(), line.size() - 1}));
    }
    return theirs;
  }
  void write_all(std::span<const char> bytes) {
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw SystemError(errno, "tell the other end");
    }
  }
  void read_all(std::span<char> bytes) {
    if (::recv(fd_.get(), bytes.data(), bytes.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw SystemError(errno, "hear of the other end");
    }
  }

  bool calls_;
  Fd fd_;
};

class Player {
 public:
  explicit Player(const Options& options)
      : options_(options),
        device_(Endpoint{options.local, 0, 0}, {.seed = seed(), .faults = std::nullopt}),
        memory_(2 * std::size_t{options.size}),
        region_(device_.memory, memory_.bytes()),
        queue_(device_, 4096),
        shared_(device_, kReceives),
        turns_(options.queue_pairs) {
    QpNumbers numbers(static_cast<std::uint32_t>(device_.random()));
    for (std::size_t i = 0; i < options_.queue_pairs; ++i) {
      QueuePairSetup setup;
      setup.number = numbers.next(queue_.slot());
      setup.send_depth = 1;
      setup.receive_depth = kReceives;
      setup.context = &device_.context;
      setup.cq = queue_.raw();
      if (options_.shared) {
        setup.srq = shared_.raw();
        setup.shared = &shared_.receives().queue();
      }
      queue_pairs_.push_back(std::make_shared<QueuePair>(
          setup, queue_.worker().engine().completions(), device_.memory));
      places_.push_back(
          {setup.number, Psn(static_cast<std::uint32_t>(device_.random())), options_.local});
    }
    receives_ = post_receives(kReceives);
  }

  void play() {
    Telephone telephone(options_.host);
    const auto theirs = telephone.exchange(places_, options_.shared ? kTableSize : 1);
    for (std::size_t i = 0; i < theirs.size(); ++i) connect(i, theirs[i]);
    telephone.finish();
    if (!options_.host.empty()) {
      for (std::size_t i = 0; i < queue_pairs_.size(); ++i) send(i);
    }
    const TimePoint end = monotonic_now() + kPatience;
    while (sent_ < options_.exchanges || received_ < options_.exchanges) {
      poll_queue();
      if (monotonic_now() > end) {
        throw std::runtime_error(
            fmt::format("{} sent and {} received of {}", sent_, received_, options_.exchanges));
      }
    }
    // The other end may still wait for an acknowledgement.
    const TimePoint linger = monotonic_now() + std::chrono::milliseconds(500);
    over_ = true;
    while (monotonic_now() < linger) poll_queue();
    fmt::print("{} exchanges done\n", options_.exchanges);
  }

 private:
  static std::uint64_t seed() {
    std::random_device random;  // allowed: this is the program
    return std::uint64_t{random()} << 32U | random();
  }

  struct Turn {
    bool sending = false;    // our message is under way
    bool answering = false;  // theirs has come
  };

  void connect(std::size_t i, const Place& to) {
    const Path path(queue_.local(), Endpoint{to.address, kRocePort, 0});
    ResponderConfig responder;
    responder.source = to.qp;
    responder.expected = to.first;
    responder.min_rnr_timer = 12;
    RequesterConfig requester;
    requester.destination = to.qp;
    requester.first = places_[i].first;
    requester.window_limit = queue_.window_limit();
    queue_.worker().hand_over([qp = queue_pairs_[i], path, responder, requester](Engine& engine) {
      engine.add(qp);
      qp->connect_receive(path, responder);
      qp->connect_send(requester);
    });
  }
  std::uint32_t post_receives(std::uint32_t count) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory_.bytes().data()), options_.size,
                region_.local_key().value()};
    ibv_recv_wr wr{.wr_id = kReceiveId, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
      const int error = options_.shared ? ibv_post_srq_recv(shared_.raw(), &wr, &bad)
                                        : ibv_post_recv(queue_pairs_[0].get(), &wr, &bad);
      if (error != 0) throw SystemError(error, "post a receive");
    }
    return count;
  }
  void send(std::size_t i) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory_.bytes().subspan(options_.size).data()),
                options_.size, region_.local_key().value()};
    ibv_send_wr wr{};
    wr.wr_id = kSendId;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(queue_pairs_[i].get(), &wr, &bad);
    if (error != 0) throw SystemError(error, "post a send");
    turns_[i] = {.sending = true, .answering = false};
  }
  void poll_queue() {
    std::array<ibv_wc, 32> completions{};
    const int n = ibv_poll_cq(queue_.raw(), 32, completions.data());
    for (const ibv_wc& wc : std::span(completions).first(static_cast<std::size_t>(n))) take(wc);
  }
  void take(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) {
      if (over_) return;
      throw std::runtime_error(fmt::format("completion status {}", std::to_underlying(wc.status)));
    }
    std::size_t i = 0;
    while (queue_pairs_.at(i)->number().value() != wc.qp_num) ++i;
    if (wc.wr_id == kSendId) {
      ++sent_;
      turns_[i].sending = false;
    } else {
      ++received_;
      turns_[i].answering = true;
      if (--receives_ <= options_.queue_pairs) receives_ += post_receives(kReceives - receives_);
    }
    if (turns_[i].answering && !turns_[i].sending && sent_ < options_.exchanges) send(i);
  }

  Options options_;
  DeviceParts device_;
  MappedMemory memory_;
  SoftMemoryRegion region_;
  SoftCompletionQueue queue_;
  SoftSharedReceiveQueue shared_;
  std::vector<std::shared_ptr<QueuePair>> queue_pairs_;
  std::vector<Place> places_;
  std::vector<Turn> turns_;
  std::uint32_t receives_ = 0;  // posted
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  bool over_ = false;
};

Options parse_options(const std::vector<std::string>& words) {
  const auto local = words.size() < 2 ? std::nullopt : IpAddress::parse(words[0]);
  if (!local) throw std::runtime_error("LOCAL serve|HOST [OPTION...]");
  Options o;
  o.local = *local;
  if (words[1] != "serve") o.host = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--shared") {
      o.shared = true;
      continue;
    }
    const std::uint64_t value = std::stoull(words.at(i + 1));
    if (words[i] == "--queue-pairs") o.queue_pairs = value;
    if (words[i] == "--size") o.size = static_cast<std::uint32_t>(value);
    if (words[i] == "--exchanges") o.exchanges = value;
    ++i;
  }
  return o;
}

}  // namespace
}  // namespace ipoverbs::verbs::soft

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    ipoverbs::verbs::soft::Player(ipoverbs::verbs::soft::parse_options({argv + 1, argv + argc}))
        .play();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "interop_pingpong: {}\n", error.what());
    return 1;
  }
}
