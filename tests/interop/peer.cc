// One end of a conversation with somebody else's RDMA: opens the software device, listens or dials,
// sends and receives messages, and says what it sees. What tests/interop/run puts rdma-core's own
// tools against.
//
//   interop_peer listen LOCAL PORT [OPTION...]
//   interop_peer dial LOCAL REMOTE PORT [OPTION...]
//
//   --messages N    receives N messages and sends as many; default 1
//   --size BYTES    of what it sends on its own; default 16
//   --first         sends without waiting; otherwise sends back whatever comes
//   --disconnect    disconnects when all is done; otherwise waits for the other side to
//   --reject        rejects what comes in, and that is all
//   --delay MS      answers a connect request so much later
//   --faults PLAN   spoils its packets (verbs/soft/fault_plan.h)
//   --timeout S     gives up; default 30
//
// Prints "listening", each event and "done". Exit status: 0 when everything was received, sent and
// ended as it should; 3 when the dialled side rejected, 1 otherwise.

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/clock.h"
#include "core/memory.h"
#include "verbs/soft/open.h"

namespace ipoverbs {
namespace {

using namespace verbs;

struct Options {
  bool listens = false;
  IpAddress local;
  IpAddress remote;
  std::uint16_t port = 0;
  std::uint64_t messages = 1;
  std::uint32_t size = 16;
  bool first = false;
  bool disconnects = false;
  bool rejects = false;
  Duration delay{};
  std::optional<soft::FaultPlan> faults;
  Duration timeout = std::chrono::seconds(30);
};

Options parse_options(std::vector<std::string> words) {
  std::size_t next = 0;
  const auto take = [&] {
    if (next == words.size()) throw std::runtime_error("an argument is missing");
    return words[next++];
  };
  const auto address = [&] {
    const auto parsed = IpAddress::parse(take());
    if (!parsed) throw std::runtime_error("not an IP address: " + words[next - 1]);
    return *parsed;
  };
  Options o;
  o.listens = take() == "listen";
  o.local = address();
  if (!o.listens) o.remote = address();
  o.port = static_cast<std::uint16_t>(std::stoul(take()));
  while (next < words.size()) {
    const std::string option = take();
    if (option == "--messages") {
      o.messages = std::stoull(take());
    } else if (option == "--size") {
      o.size = static_cast<std::uint32_t>(std::stoul(take()));
    } else if (option == "--first") {
      o.first = true;
    } else if (option == "--disconnect") {
      o.disconnects = true;
    } else if (option == "--reject") {
      o.rejects = true;
    } else if (option == "--delay") {
      o.delay = std::chrono::milliseconds(std::stoul(take()));
    } else if (option == "--faults") {
      o.faults = soft::parse_fault_plan(take());
    } else if (option == "--timeout") {
      o.timeout = std::chrono::seconds(std::stoul(take()));
    } else {
      throw std::runtime_error("unknown option " + option);
    }
  }
  return o;
}

class Peer : public EventHandler {
 public:
  explicit Peer(const Options& options)
      : options_(options),
        device_(soft::open_soft_device(request(), soft_options())),
        memory_(2 * kReceives * kSlot),
        region_(device_->register_memory(memory_.bytes())),
        queue_(device_->create_completion_queue(4 * kReceives)) {}

  int run() {
    const TimePoint end = monotonic_now() + options_.timeout;
    if (options_.listens) {
      device_->listen(options_.port);
      fmt::print("listening\n");
    } else {
      connection_ =
          device_->dial({.endpoint = {options_.remote, options_.port, 0}, .by_gid = false}, {});
    }
    while (!status_ && monotonic_now() < end) turn();
    fmt::print("received {} sent {} {}\n", received_, sent_, status_ ? "done" : "timeout");
    connection_.reset();
    return status_.value_or(1);
  }

  void on_event(Event& event) override {
    fmt::print("{} {} {}\n", to_string(event.kind), event.status, event.detail);
    switch (event.kind) {
      case EventKind::RouteResolved:
        make_queue_pair();
        connection_->connect({});
        break;
      case EventKind::ConnectRequest:
        on_request(event);
        break;
      case EventKind::Established:
        established_ = true;
        break;
      case EventKind::Rejected:
        status_ = 3;
        break;
      case EventKind::Failed:
        status_ = 1;
        break;
      case EventKind::Disconnected:
        // Its last message may have been received and not acknowledged: its tool tells.
        poll_queue();
        status_ = received_ >= options_.messages && begun_ >= options_.messages ? 0 : 1;
        break;
      default:
        break;
    }
  }

 private:
  static constexpr std::size_t kSlot = 262144;  // the largest message
  static constexpr std::size_t kReceives = 64;

  [[nodiscard]] DeviceRequest request() const {
    DeviceRequest request;
    request.underlay = {options_.local, 0, 0};
    return request;
  }
  [[nodiscard]] soft::SoftOptions soft_options() const {
    std::random_device random;  // allowed: this is the program
    return {std::uint64_t{random()} << 32U | random(), options_.faults};
  }
  [[nodiscard]] bool complete() const {
    return received_ >= options_.messages && sent_ >= options_.messages;
  }

  void on_request(Event& event) {
    if (connection_) return;  // one is enough: dropped, it is rejected
    if (options_.rejects) {
      event.incoming->reject({});
      status_ = 0;
      return;
    }
    connection_ = std::move(event.incoming);
    accept_at_ = monotonic_now() + options_.delay;
  }

  void turn() {
    device_->process_events(*this);
    if (accept_at_ && monotonic_now() >= *accept_at_) {
      accept_at_.reset();
      make_queue_pair();
      connection_->accept({});
    }
    poll_queue();
    if (established_ && options_.first) {
      owed_.assign(options_.messages, options_.size);
      established_ = false;
    }
    for (; !owed_.empty() && begun_ - sent_ < kReceives; owed_.pop_front()) send(owed_.front());
    if (complete() && options_.disconnects && !std::exchange(disconnecting_, true)) {
      connection_->disconnect();
    }
    ibv_req_notify_cq(queue_->raw(), 0);
    poll_queue();
    std::array<pollfd, 2> fds{{{device_->event_fd(), POLLIN, 0}, {queue_->fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), 20);
    if (fds[1].revents != 0) queue_->consume_events();
  }

  void make_queue_pair() {
    connection_->create_queue_pair(
        {.completion_queue = queue_.get(), .send_depth = kReceives, .receive_depth = kReceives});
    for (std::size_t i = 0; i < kReceives; ++i) post_receive(i);
  }
  [[nodiscard]] ibv_sge slot(std::size_t i, std::size_t size) const {
    return {reinterpret_cast<std::uintptr_t>(memory_.bytes().subspan(i * kSlot).data()),
            static_cast<std::uint32_t>(size), region_->local_key().value()};
  }
  void post_receive(std::size_t i) {
    ibv_sge sge = slot(i, kSlot);
    ibv_recv_wr wr{.wr_id = i, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(connection_->queue_pair(), &wr, &bad) != 0) {
      throw std::runtime_error("a receive was refused");
    }
  }
  void send(std::uint32_t size) {
    ibv_sge sge = slot(kReceives + begun_ % kReceives, size);
    ibv_send_wr wr{};
    wr.wr_id = kReceives;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(connection_->queue_pair(), &wr, &bad) != 0) {
      throw std::runtime_error("a send was refused");
    }
    ++begun_;
  }
  void poll_queue() {
    std::array<ibv_wc, 16> completions{};
    int n = 0;
    while ((n = ibv_poll_cq(queue_->raw(), 16, completions.data())) > 0) {
      for (const ibv_wc& wc : std::span(completions).first(static_cast<std::size_t>(n))) take(wc);
    }
  }
  void take(const ibv_wc& wc) {
    if (wc.status == IBV_WC_WR_FLUSH_ERR) return;  // the end of it
    if (wc.status != IBV_WC_SUCCESS) {
      throw std::runtime_error(fmt::format("completion status {}", std::to_underlying(wc.status)));
    }
    if (wc.wr_id == kReceives) {
      ++sent_;
      return;
    }
    ++received_;
    if (!options_.first) owed_.push_back(wc.byte_len);
    post_receive(wc.wr_id);
  }

  Options options_;
  std::unique_ptr<Device> device_;
  MappedMemory memory_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<Connection> connection_;
  std::optional<TimePoint> accept_at_;
  bool established_ = false;
  bool disconnecting_ = false;
  std::deque<std::uint32_t> owed_;  // sizes of what is to be sent
  std::uint64_t begun_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::optional<int> status_;
};

}  // namespace
}  // namespace ipoverbs

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return ipoverbs::Peer(ipoverbs::parse_options({argv + 1, argv + argc})).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "interop_peer: {}\n", error.what());
    return 1;
  }
}
