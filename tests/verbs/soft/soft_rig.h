// Two software devices on simulated wires and a virtual clock, as far as connections go: each has
// one worker on a data wire and QP1 on another.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/verbs/soft/sim_network.h"
#include "verbs/soft/connections.h"

namespace ipoverbs::verbs::soft::sim {

inline std::span<const std::byte> as_data(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class SimDevice : public ConnectionHost, public EngineObserver, public Bell, public EventHandler {
 public:
  static constexpr std::uint16_t kPort = 4755;
  static constexpr std::size_t kSlot = 256;

  SimDevice(Clock& time, const Endpoint& address, std::uint64_t seed,
            const std::optional<FaultPlan>& management_faults = {},
            PathMtu path_mtu = PathMtu(1024))
      : clock(time),
        local(address),
        faulty(management_faults ? std::optional<FaultyWire>(std::in_place, management_wire,
                                                             *management_faults, seed)
                                 : std::nullopt),
        worker(context, data_wire, *this, *this, clock, 256),
        port(faulty ? static_cast<Wire&>(*faulty) : management_wire, local),
        connections(*this, port, clock, context, table,
                    {.path_mtu = path_mtu,
                     .timers = {},
                     .max_send_wr = 64,
                     .max_recv_wr = 64,
                     .seed = seed}),
        key(*table.add(memory)) {}

  // ConnectionHost
  [[nodiscard]] QueuePairPlace place_queue_pair(CompletionQueue& /*queue*/) override {
    return {QpNumber(next_number++), local, std::uint64_t{1} << 20};
  }
  [[nodiscard]] Route route_to(const IpAddress& /*remote*/) const override {
    return {no_route, route_mtu};
  }
  void wake() noexcept override { woken = true; }
  // EngineObserver: one thread here, so what is found out can be told at once.
  void on_communication(QpNumber qp) noexcept override {
    connections.on_notice(qp, IBV_WC_SUCCESS);
  }
  void on_failure(QpNumber qp, ibv_wc_status status) noexcept override {
    connections.on_notice(qp, status);
  }
  [[nodiscard]] bool on_stray(const Received&, QpNumber) noexcept override { return false; }
  // Bell
  void ring() noexcept override {}
  void set_alarm(TimePoint) noexcept override {}
  // EventHandler: events are kept as lines; what comes in is kept if it is wanted.
  void on_event(Event& event) override {
    std::string line = to_string(event.kind);
    if (event.status != 0) line += fmt::format(" {}", event.status);
    events.push_back(line);
    detail = event.detail;
    data.assign(event.private_data.begin(), event.private_data.end());
    if (event.incoming && keep_incoming) connection = std::move(event.incoming);
    if (event.kind == EventKind::ConnectRequest && accept_at_once) {
      create_queue_pair();
      post_receive(0);
      connection->accept({});
    }
  }

  void dial(const IpAddress& remote, std::optional<std::uint8_t> traffic_class = {}) {
    PathOptions path;
    path.traffic_class = traffic_class;
    connection = connections.dial({.endpoint = {remote, kPort, 0}, .by_gid = false}, path);
  }
  void create_queue_pair() {
    connection->create_queue_pair(
        {.completion_queue = &completion_queue, .send_depth = 16, .receive_depth = 16});
  }
  void create_sharing_queue_pair() {
    connection->create_queue_pair({.completion_queue = &completion_queue,
                                   .shared_receive_queue = &shared_queue,
                                   .send_depth = 16});
  }
  void post_receive(std::uint64_t id, bool shared = false) {
    ibv_sge sge{address_of(id), kSlot, key.value()};
    ibv_recv_wr request{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    posted = shared ? ibv_post_srq_recv(&receives, &request, &bad)
                    : ibv_post_recv(connection->queue_pair(), &request, &bad);
  }
  void send(std::uint64_t id, std::string_view text) {
    std::ranges::copy(as_data(text), std::span(memory).subspan(id * kSlot).begin());
    ibv_sge sge{address_of(id), static_cast<std::uint32_t>(text.size()), key.value()};
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    posted = ibv_post_send(connection->queue_pair(), &request, &bad);
  }
  [[nodiscard]] std::string text_at(std::uint64_t id, std::size_t size) const {
    const auto bytes = std::span(memory).subspan(id * kSlot, size);
    return {reinterpret_cast<const char*>(bytes.data()), size};
  }
  // What has happened since the last call, joined by commas.
  std::string seen() {
    std::string all;
    for (const std::string& event : events) all += (all.empty() ? "" : ", ") + event;
    events.clear();
    return all;
  }

  struct Queue : CompletionQueue {
    explicit Queue(Worker& w) : worker(w) {}
    [[nodiscard]] ibv_cq* raw() const override { return &worker; }
    [[nodiscard]] int fd() const override { return -1; }
    void consume_events() noexcept override {}
    Worker& worker;
  };

  struct SharedQueue : SharedReceiveQueue {
    explicit SharedQueue(SharedReceives& r) : receives(r) {}
    [[nodiscard]] ibv_srq* raw() const override { return &receives; }
    SharedReceives& receives;
  };

  Clock& clock;
  Endpoint local;
  SimWire data_wire;
  SimWire management_wire;
  std::optional<FaultyWire> faulty;
  ibv_context context = make_context();
  MemoryTable table;
  Worker worker;
  Queue completion_queue{worker};
  SharedReceives receives{context, table, 16};
  SharedQueue shared_queue{receives};
  GsiPort port;
  Connections connections;

  std::vector<std::byte> memory = std::vector<std::byte>(64 * kSlot);
  LocalKey key;
  std::unique_ptr<Connection> connection;
  bool keep_incoming = true;
  bool accept_at_once = false;
  std::vector<std::string> events;
  std::string detail;
  std::vector<std::byte> data;
  std::vector<ibv_wc> completions;
  std::uint32_t next_number = 0x10;
  bool woken = false;
  int no_route = 0;
  PathMtu route_mtu{4096};
  int posted = 0;

 private:
  [[nodiscard]] std::uint64_t address_of(std::uint64_t id) const {
    return reinterpret_cast<std::uintptr_t>(memory.data() + id * kSlot);
  }
};

class SimPair {
 public:
  explicit SimPair(bool v6 = false, const std::optional<FaultPlan>& faults = {},
                   PathMtu path_mtu_a = PathMtu(1024))
      : a(clock, end(v6, 1), 1, faults, path_mtu_a), b(clock, end(v6, 2), 2, faults) {
    a.data_wire.connect(b.data_wire, a.local);
    b.data_wire.connect(a.data_wire, b.local);
    a.management_wire.connect(b.management_wire, a.local);
    b.management_wire.connect(a.management_wire, b.local);
    b.connections.listen(SimDevice::kPort);
  }
  SimPair(const SimPair&) = delete;
  SimPair& operator=(const SimPair&) = delete;
  // Connections say goodbye, which takes both wires.
  ~SimPair() {
    a.connection.reset();
    b.connection.reset();
  }

  // Lets everything happen until `span` has passed.
  void run(Duration span = std::chrono::milliseconds(10)) {
    const TimePoint until = clock.now() + span;
    while (true) {
      bool busy = false;
      for (SimDevice* device : {&a, &b}) {
        busy |= device->connections.process_events(*device) > 0;
        ibv_wc wc{};
        while (ibv_poll_cq(&device->worker, 1, &wc) == 1) {
          device->completions.push_back(wc);
          busy = true;
        }
      }
      if (busy) continue;
      TimePoint next = until;
      for (SimDevice* device : {&a, &b}) {
        next = std::min(next, device->worker.engine().deadline().value_or(until));
        next = std::min(next, device->connections.deadline().value_or(until));
      }
      if (next >= until) break;
      // A deadline in the past (a poll had no room for it) must not stop the clock.
      clock.advance_to(std::max(next, clock.now() + std::chrono::microseconds(1)));
    }
    clock.advance_to(until);
  }
  // As far as the request's arrival.
  void request(std::string_view data = "hello") {
    a.dial(b.local.address);
    run();
    a.create_queue_pair();
    a.connection->connect(as_data(data));
    run();
  }
  void connect() {
    request();
    b.create_queue_pair();
    b.post_receive(0);
    b.post_receive(1);
    b.connection->accept(as_data("welcome"));
    run();
  }

  static Endpoint end(bool v6, unsigned i) {
    return {*IpAddress::parse(fmt::format("{}{}", v6 ? "2001:db8::" : "192.0.2.", i)),
            static_cast<std::uint16_t>(50000 + i), 0};
  }

  Clock clock;
  SimDevice a;
  SimDevice b;
};

}  // namespace ipoverbs::verbs::soft::sim
