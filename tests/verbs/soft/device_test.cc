// Two whole software devices on real sockets, in a network namespace of the test's own.
#include "verbs/soft/device.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/verbs/soft/own_network.h"
#include "verbs/soft/open.h"

namespace ipoverbs::verbs::soft {
namespace {

using namespace std::chrono_literals;

const auto* const kNetwork = testing::AddGlobalTestEnvironment(new test::OwnNetwork);

constexpr std::uint16_t kPort = 4755;
constexpr std::size_t kSlot = std::size_t{64} << 10;
constexpr std::size_t kSlots = 64;

Endpoint underlay(bool v6, unsigned i) {
  return {*IpAddress::parse(fmt::format("{}{}", v6 ? "2001:db8::" : "192.0.2.", i)), 0, 0};
}

// One end: a device, a completion queue, registered buffers, and a record of events.
class Side : public EventHandler {
 public:
  explicit Side(const Endpoint& address, const std::optional<FaultPlan>& faults = {},
                IpMtu mtu = IpMtu(9000), ConnectionTimers timers = {})
      : device(std::make_unique<SoftDevice>(
            request_for(address, timers), mtu,
            SoftOptions{address.address.bytes().back() == std::byte{1} ? 1U : 2U, faults})),
        region(device->register_memory(memory)),
        completions(device->create_completion_queue(1024)) {}

  void on_event(Event& event) override {
    kinds.push_back(event.kind);
    status = event.status;
    detail = event.detail;
    if (!event.private_data.empty()) {
      data.assign(event.private_data.begin(), event.private_data.end());
    }
    if (event.kind == EventKind::ConnectRequest) incoming.push_back(std::move(event.incoming));
  }
  [[nodiscard]] bool saw(EventKind kind) const { return std::ranges::count(kinds, kind) > 0; }

  [[nodiscard]] QueuePairConfig queues(CompletionQueue* queue = nullptr) const {
    QueuePairConfig config;
    config.completion_queue = queue != nullptr ? queue : completions.get();
    config.send_depth = config.receive_depth = kSlots;
    return config;
  }
  [[nodiscard]] std::span<std::byte> slot(std::size_t i) {
    return std::span(memory).subspan(i % kSlots * kSlot, kSlot);
  }
  void post_receive(ibv_qp* qp, std::uint64_t id) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(slot(id).data()), kSlot, region->local_key().value()};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  void post_send(ibv_qp* qp, std::uint64_t id, std::size_t size) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(slot(id).data()), static_cast<std::uint32_t>(size),
                region->local_key().value()};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kSlot * kSlots);
  std::unique_ptr<Device> device;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> completions;
  std::vector<EventKind> kinds;
  std::vector<std::byte> data;
  std::string detail;
  int status = 0;
  std::vector<std::unique_ptr<Connection>> incoming;
  std::vector<ibv_wc> completed;  // polled, not looked at yet

 private:
  static DeviceRequest request_for(const Endpoint& address, const ConnectionTimers& timers) {
    DeviceRequest request;
    request.underlay = address;
    request.timers = timers;
    return request;
  }
};

class DeviceTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!test::why_no_network().empty()) GTEST_SKIP() << test::why_no_network();
    ASSERT_NE(kNetwork, nullptr);
  }
  void open(const std::optional<FaultPlan>& faults = {}) {
    a_.emplace(underlay(GetParam(), 1), faults);
    b_.emplace(underlay(GetParam(), 2), faults);
    b_->device->listen(kPort);
  }
  // Handles events of both ends until `done`; false if that takes ten seconds.
  bool until(const std::function<bool()>& done) {
    const TimePoint limit = monotonic_now() + 10s;
    while (!done()) {
      if (monotonic_now() > limit) return false;
      std::array<pollfd, 2> ready{
          {{a_->device->event_fd(), POLLIN, 0}, {b_->device->event_fd(), POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), 100);
      a_->device->process_events(*a_);
      b_->device->process_events(*b_);
    }
    return true;
  }
  [[nodiscard]] std::unique_ptr<Connection> dial() {
    RemoteAddress remote;
    remote.endpoint = underlay(GetParam(), 2);
    remote.endpoint.port = kPort;
    return a_->device->dial(remote, {});
  }
  // Connects with queue pairs at both ends, the listener's on `queue_b`, eight receives posted.
  void connect(CompletionQueue* queue_b = nullptr) {
    out_ = dial();
    ASSERT_TRUE(until([&] { return a_->saw(EventKind::RouteResolved); }));
    out_->create_queue_pair(a_->queues());
    for (std::uint64_t i = 0; i < 8; ++i) a_->post_receive(out_->queue_pair(), 32 + i);
    out_->connect(std::as_bytes(std::span("hello", 5)));
    const std::size_t before = b_->incoming.size();
    ASSERT_TRUE(until([&] { return b_->incoming.size() > before; }));
    Connection& in = *b_->incoming.back();
    in.create_queue_pair(b_->queues(queue_b));
    // Buffers of its own: workers run at the same time.
    const std::uint64_t first = 32 + before % 4 * 8;
    for (std::uint64_t i = 0; i < 8; ++i) b_->post_receive(in.queue_pair(), first + i);
    in.accept(std::as_bytes(std::span("welcome", 7)));
    ASSERT_TRUE(until([&] {
      return a_->saw(EventKind::Established) || a_->saw(EventKind::Failed) ||
             a_->saw(EventKind::Rejected);
    }));
    a_->kinds.clear();
  }
  // Until there may be something to poll, or a tenth of a second.
  static void sleep_on(CompletionQueue& queue) {
    queue.consume_events();
    ibv_req_notify_cq(queue.raw(), 0);
    pollfd ready{queue.fd(), POLLIN, 0};
    ::poll(&ready, 1, 100);
  }
  // Polls both ends' queues until `side` has `count` completions, and takes those; what the other
  // end has got is kept for it.
  std::vector<ibv_wc> completions(Side& side, std::size_t count) {
    const TimePoint limit = monotonic_now() + 10s;
    while (side.completed.size() < count && monotonic_now() < limit) {
      for (Side* const one : {&*a_, &*b_}) {
        std::array<ibv_wc, 16> wc;
        const int n = ibv_poll_cq(one->completions->raw(), 16, wc.data());
        one->completed.insert(one->completed.end(), wc.begin(), wc.begin() + n);
      }
    }
    EXPECT_EQ(side.completed.size(), count);
    return std::exchange(side.completed, {});
  }

  std::optional<Side> a_;
  std::optional<Side> b_;
  std::unique_ptr<Connection> out_;
};

TEST_P(DeviceTest, ConnectsCarriesAndDisconnects) {
  open();
  connect();
  ASSERT_EQ(b_->data.size(), kConnectPrivateData);
  EXPECT_EQ(std::memcmp(b_->data.data(), "hello", 5), 0);
  EXPECT_EQ(std::memcmp(a_->data.data(), "welcome", 7), 0);
  EXPECT_EQ(out_->attributes().path_mtu, PathMtu(4096));
  std::ranges::fill(a_->slot(0), std::byte{0x5a});
  a_->post_send(out_->queue_pair(), 0, 65520);
  const auto got = completions(*b_, 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(got[0].byte_len, 65520U);
  EXPECT_TRUE(std::ranges::equal(b_->slot(32).first(65520), a_->slot(0).first(65520)));
  EXPECT_EQ(completions(*a_, 1).at(0).opcode, IBV_WC_SEND);

  out_->disconnect();
  EXPECT_TRUE(until([&] { return b_->saw(EventKind::Disconnected); }));
  // Both flush what was posted: eight receives here, seven there.
  for (const ibv_wc& wc : completions(*a_, 8)) {
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(completions(*b_, 7).size(), 7U);
}

TEST_P(DeviceTest, NobodyListensNobodyAccepts) {
  open();
  out_ = dial();
  RemoteAddress elsewhere;
  elsewhere.endpoint = underlay(GetParam(), 2);
  elsewhere.endpoint.port = kPort + 1;
  const auto lost = a_->device->dial(elsewhere, {});
  ASSERT_TRUE(until([&] { return std::ranges::count(a_->kinds, EventKind::RouteResolved) == 2; }));
  lost->create_queue_pair(a_->queues());
  lost->connect({});
  ASSERT_TRUE(until([&] { return a_->saw(EventKind::Rejected); }));
  EXPECT_EQ(a_->status, 8);
  a_->kinds.clear();
  out_->create_queue_pair(a_->queues());
  out_->connect({});
  ASSERT_TRUE(until([&] { return !b_->incoming.empty(); }));
  b_->incoming.back()->reject(std::as_bytes(std::span("no", 2)));
  ASSERT_TRUE(until([&] { return a_->saw(EventKind::Rejected); }));
  EXPECT_EQ(a_->status, 28);
  EXPECT_EQ(std::memcmp(a_->data.data(), "no", 2), 0);
}

TEST_P(DeviceTest, NoRouteIsSaidAtOnce) {
  open();
  RemoteAddress far;
  far.endpoint = {*IpAddress::parse(GetParam() ? "2001:db8:ffff::1" : "198.51.100.1"), kPort, 0};
  out_ = a_->device->dial(far, {});
  ASSERT_TRUE(until([&] { return a_->saw(EventKind::Failed); }));
  EXPECT_EQ(a_->status, -ENETUNREACH);
}

// The narrower end decides.
TEST_P(DeviceTest, PathMtuIsTheSmallerOfTheTwo) {
  for (const bool dialler_is_narrow : {false, true}) {
    a_.emplace(underlay(GetParam(), 1), std::nullopt, IpMtu(dialler_is_narrow ? 1500 : 9000));
    b_.emplace(underlay(GetParam(), 2), std::nullopt, IpMtu(dialler_is_narrow ? 9000 : 1500));
    b_->device->listen(kPort);
    connect();
    EXPECT_EQ(out_->attributes().path_mtu, PathMtu(1024));
    EXPECT_EQ(b_->incoming.back()->attributes().path_mtu, PathMtu(1024));
    for (const std::size_t size : {64U, 1024U, 1025U, 65520U}) {
      a_->post_send(out_->queue_pair(), 0, size);
      const auto got = completions(*b_, 1);
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(got[0].byte_len, size);
    }
    out_.reset();
    b_.reset();
    a_.reset();
  }
}

// The underlay's MTU was changed after the device was opened.
TEST_P(DeviceTest, AConnectionFitsThePathAsItIs) {
  open();
  ASSERT_TRUE(test::set_loopback_mtu(1500));
  connect();
  EXPECT_EQ(out_->attributes().path_mtu, PathMtu(1024));
  a_->post_send(out_->queue_pair(), 0, 65520);
  EXPECT_EQ(completions(*b_, 1).size(), 1U);
  ASSERT_TRUE(test::set_loopback_mtu(65536));
}

TEST_P(DeviceTest, SurvivesABadWire) {
  open(parse_fault_plan("seed=3 out:drop=0.03,duplicate=0.01,reorder=0.01,corrupt=0.01"));
  connect();
  constexpr std::size_t kMessages = 300;
  std::size_t sent = 0;
  std::size_t received = 0;
  std::size_t completed = 0;
  const TimePoint limit = monotonic_now() + 30s;
  while (received < kMessages && monotonic_now() < limit) {
    while (sent < kMessages && sent - completed < 8) {
      std::ranges::fill(a_->slot(sent % 8), static_cast<std::byte>(sent));
      a_->post_send(out_->queue_pair(), sent % 8, 40000);
      ++sent;
    }
    ibv_wc wc{};
    while (ibv_poll_cq(a_->completions->raw(), 1, &wc) == 1) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ++completed;
    }
    while (ibv_poll_cq(b_->completions->raw(), 1, &wc) == 1) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      const auto bytes = b_->slot(wc.wr_id).first(40000);
      ASSERT_TRUE(std::ranges::all_of(
          bytes, [&](std::byte b) { return b == static_cast<std::byte>(received); }));
      ++received;
      b_->post_receive(b_->incoming.back()->queue_pair(), wc.wr_id);
    }
    a_->device->process_events(*a_);
    b_->device->process_events(*b_);
  }
  EXPECT_EQ(received, kMessages);
}

// --- counting ---

// The sum of the device's counters whose name begins so.
std::uint64_t counted(const Side& side, std::string_view prefix) {
  std::uint64_t sum = 0;
  for (const CounterValue& counter : side.device->counters()) {
    if (counter.name.starts_with(prefix)) sum += counter.value;
  }
  return sum;
}

TEST_P(DeviceTest, CountsEveryDamagedPacketAsDropped) {
  open(parse_fault_plan("seed=5 out/send:corrupt=0.1"));
  connect();
  for (std::uint64_t i = 0; i < 8; ++i) a_->post_send(out_->queue_pair(), i, 65520);
  EXPECT_EQ(completions(*b_, 8).size(), 8U);
  EXPECT_EQ(completions(*a_, 8).size(), 8U);
  const std::uint64_t damaged = counted(*a_, "fault_out_corrupted");
  EXPECT_GE(damaged, 8U);
  const TimePoint limit = monotonic_now() + 10s;
  while (counted(*b_, "rx_drop_") < damaged && monotonic_now() < limit) {
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(b_->completions->raw(), 1, &wc), 0);
  }
  EXPECT_EQ(counted(*b_, "rx_drop_"), damaged);
  EXPECT_GE(counted(*b_, "rx_drop_bad_icrc"), damaged / 2);
}

TEST_P(DeviceTest, CountsNoDropOnAGoodWire) {
  open();
  connect();
  for (std::uint64_t i = 0; i < 8; ++i) a_->post_send(out_->queue_pair(), i, 65520);
  EXPECT_EQ(completions(*b_, 8).size(), 8U);
  EXPECT_EQ(counted(*b_, "rx_drop_"), 0U);
  EXPECT_EQ(counted(*b_, "fault_"), 0U);
  EXPECT_GE(counted(*b_, "rx_datagrams"), 8U * 16);
}

// --- congestion ---

// Through the kernel: the mark, the notification and the window's answer to it.
TEST_P(DeviceTest, MarksAreAnsweredByNotifications) {
  open(parse_fault_plan("seed=5 out/send:mark=0.2"));
  connect();
  constexpr std::uint64_t kMessages = 8;
  for (std::uint64_t i = 0; i < kMessages; ++i) a_->post_send(out_->queue_pair(), i, 65520);
  EXPECT_EQ(completions(*b_, kMessages).size(), kMessages);
  EXPECT_EQ(completions(*a_, kMessages).size(), kMessages);
  EXPECT_GE(counted(*a_, "fault_out_marked"), 8U);
  EXPECT_EQ(counted(*b_, "ecn_marked"), counted(*a_, "fault_out_marked"));
  EXPECT_GE(counted(*b_, "cnp_sent"), 1U);
  EXPECT_LE(counted(*b_, "cnp_sent"), counted(*b_, "ecn_marked"));
  EXPECT_EQ(counted(*a_, "cnp_received"), counted(*b_, "cnp_sent"));
  EXPECT_EQ(counted(*b_, "cnp_received"), 0U);
}

// --- sleeping ---

// Sends from one thread, an armed and sleeping worker in another: never is one missed.
TEST_P(DeviceTest, ArmedWorkerIsWokenForEveryMessage) {
  open();
  connect();
  constexpr int kRounds = 2000;
  ibv_qp* const qp_b = b_->incoming.back()->queue_pair();
  std::atomic<int> heard{0};
  std::thread worker([&] {
    CompletionQueue& queue = *b_->completions;
    pollfd ready{queue.fd(), POLLIN, 0};
    ibv_wc wc{};
    while (heard < kRounds) {
      if (ibv_req_notify_cq(queue.raw(), 1) != 0) return;
      bool any = false;
      while (ibv_poll_cq(queue.raw(), 1, &wc) == 1) {
        any = true;
        b_->post_receive(qp_b, wc.wr_id);
        ++heard;
      }
      if (any) continue;
      if (::poll(&ready, 1, 5000) != 1) return;  // missed
      queue.consume_events();
    }
  });
  ibv_wc wc{};
  const TimePoint limit = monotonic_now() + 60s;
  for (int i = 0; i < kRounds && monotonic_now() < limit; ++i) {
    a_->post_send(out_->queue_pair(), 0, 100);
    int completed = 0;
    while ((heard <= i || completed == 0) && monotonic_now() < limit) {
      completed += ibv_poll_cq(a_->completions->raw(), 1, &wc);
      std::this_thread::yield();
    }
  }
  worker.join();
  EXPECT_EQ(heard, kRounds);
}

// Nothing comes in any more; what is left to do is done by timers, which wake a sleeper.
TEST_P(DeviceTest, TimersWakeASleepingWorker) {
  ConnectionTimers timers;
  timers.retry_count = 1;
  timers.ack_timeout = 12;  // 17 ms
  a_.emplace(underlay(GetParam(), 1), std::nullopt, IpMtu(9000), timers);
  b_.emplace(underlay(GetParam(), 2));
  b_->device->listen(kPort);
  connect();
  b_->incoming.clear();  // its queue pair is gone; the goodbye is not listened to
  a_->post_send(out_->queue_pair(), 0, 100);
  pollfd ready{a_->completions->fd(), POLLIN, 0};
  ibv_wc wc{};
  int n = 0;
  for (int i = 0; i < 1000 && n == 0; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(a_->completions->raw(), 0), 0);
    n = ibv_poll_cq(a_->completions->raw(), 1, &wc);
    if (n != 0) break;
    ASSERT_EQ(::poll(&ready, 1, 5000), 1);
    a_->completions->consume_events();
  }
  ASSERT_EQ(n, 1);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
}

// --- several workers ---

TEST_P(DeviceTest, WorkersShareThePort) {
  open();
  std::vector<std::unique_ptr<CompletionQueue>> queues;
  std::vector<std::unique_ptr<Connection>> dialled;
  for (int i = 0; i < 3; ++i) {
    queues.push_back(b_->device->create_completion_queue(256));
    connect(queues.back().get());
    dialled.push_back(std::move(out_));
  }
  std::vector<std::thread> workers;
  std::array<std::atomic<int>, 3> heard{};
  std::atomic<bool> stop{false};
  for (std::size_t w = 0; w < queues.size(); ++w) {
    workers.emplace_back([&, w] {
      ibv_qp* const qp = b_->incoming[w]->queue_pair();
      ibv_wc wc{};
      while (!stop) {
        if (ibv_poll_cq(queues[w]->raw(), 1, &wc) != 1) {
          sleep_on(*queues[w]);
          continue;
        }
        if (wc.qp_num != qp->qp_num || wc.status != IBV_WC_SUCCESS) return;
        b_->post_receive(qp, wc.wr_id);
        ++heard.at(w);
      }
    });
  }
  constexpr int kRounds = 100;
  ibv_wc wc{};
  for (int i = 0; i < kRounds; ++i) {
    for (std::size_t w = 0; w < dialled.size(); ++w) {
      a_->post_send(dialled[w]->queue_pair(), w, 20000);
    }
    for (int left = 3; left > 0;) {
      const int n = ibv_poll_cq(a_->completions->raw(), 1, &wc);
      if (n == 0) sleep_on(*a_->completions);
      left -= n;
    }
  }
  const TimePoint limit = monotonic_now() + 10s;
  const auto all = [&] {
    return std::ranges::all_of(heard, [](const auto& h) { return h == kRounds; });
  };
  while (!all() && monotonic_now() < limit) {
    static_cast<void>(ibv_poll_cq(a_->completions->raw(), 1, &wc));
    sleep_on(*a_->completions);
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_TRUE(all());
  dialled.clear();
  b_->incoming.clear();
}

// A connection is destroyed, and its memory given back, while its worker polls without pause.
TEST_P(DeviceTest, DestroyedWhileItsQueueIsPolled) {
  open();
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    ibv_wc wc{};
    while (!stop) static_cast<void>(ibv_poll_cq(b_->completions->raw(), 1, &wc));
  });
  for (int i = 0; i < 20; ++i) {
    connect();
    for (std::uint64_t id = 0; id < 4; ++id) a_->post_send(out_->queue_pair(), id, 60000);
    b_->incoming.clear();
    std::vector<std::byte>(kSlot * kSlots).swap(b_->memory);  // the old memory is gone
    b_->region = b_->device->register_memory(b_->memory);
    out_.reset();
  }
  stop = true;
  worker.join();
}

// As two workers do whose sessions come at once.
TEST_P(DeviceTest, TwoThreadsRegisterMemoryAtOnce) {
  open();
  constexpr std::size_t kEach = 400;
  std::array<std::vector<std::unique_ptr<MemoryRegion>>, 2> regions;
  std::atomic<int> ready{0};
  const auto fill = [&](std::vector<std::unique_ptr<MemoryRegion>>& own) {
    ++ready;
    while (ready < 2) continue;
    for (std::size_t i = 0; i < kEach; ++i) {
      own.push_back(a_->device->register_memory(a_->memory));
    }
  };
  std::thread other([&] { fill(regions[1]); });
  fill(regions[0]);
  other.join();

  std::set<std::uint32_t> keys;
  for (const auto& own : regions) {
    for (const auto& region : own) keys.insert(region->local_key().value());
  }
  EXPECT_EQ(keys.size(), 2 * kEach);
}

// --- opening ---

TEST_P(DeviceTest, OpensOnlyOnceAndOnlyHere) {
  DeviceRequest request;
  request.underlay = underlay(GetParam(), 1);
  const auto first = open_soft_device(request, {});
  EXPECT_EQ(first->capabilities().device, "soft");
  EXPECT_EQ(first->capabilities().active_mtu, PathMtu(4096));
  EXPECT_TRUE(first->capabilities().has_srq());
  EXPECT_THROW(static_cast<void>(open_soft_device(request, {})), SystemError);
  request.underlay = underlay(GetParam(), 9);
  EXPECT_THROW(static_cast<void>(open_soft_device(request, {})), UsageError);
}

TEST(SoftCapabilities, PathMtuLeavesRoomForHeaders) {
  struct Row {
    std::uint32_t interface;
    std::uint32_t path;
  };
  for (const Row& row : {Row{65536, 4096}, Row{9000, 4096}, Row{4176, 4096}, Row{4175, 2048},
                         Row{1500, 1024}, Row{1104, 1024}, Row{1103, 512}, Row{100, 256}}) {
    EXPECT_EQ(soft_capabilities(IpMtu(row.interface)).active_mtu, PathMtu(row.path));
  }
}

INSTANTIATE_TEST_SUITE_P(Family, DeviceTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "v6" : "v4"; });

}  // namespace
}  // namespace ipoverbs::verbs::soft
