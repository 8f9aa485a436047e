// Two live devices on the virtual clock. The input posts work at either, lets time pass, and
// decides for each datagram whether it is lost, sent twice, held back, or changed, its ICRC made
// right again so that the state machines see it.
//
// Whatever happens, requests complete in the order in which they were posted, once, and none is
// left when the queue pairs are told to fail.
#include <array>
#include <cstdlib>
#include <span>
#include <vector>

#include "tests/verbs/soft/sim_network.h"

using namespace ipoverbs;
using namespace ipoverbs::verbs::soft;
using ipoverbs::verbs::LocalKey;
using ipoverbs::verbs::QpNumber;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t b = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return b;
  }
  std::uint32_t word() { return std::uint32_t{byte()} << 8U | byte(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

// Treats what is sent as the input says.
class FuzzedWire : public Wire {
 public:
  FuzzedWire(Wire& inner, Input& input) : inner_(inner), input_(input) {}

  void send(const Burst& burst, TimePoint now) noexcept override {
    for (const Segment& segment : burst.segments()) {
      std::vector<std::byte> bytes(segment.size());
      burst.write(segment, 0, bytes);
      treat(*segment.path, std::move(bytes), now);
    }
  }
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint now) noexcept override {
    inner_.send_one(path, datagram, now);
  }
  [[nodiscard]] std::span<const Received> receive(TimePoint now) noexcept override {
    return inner_.receive(now);
  }
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept override {
    return inner_.deadline();
  }

 private:
  void treat(const Path& path, std::vector<std::byte> bytes, TimePoint now) {
    const unsigned action = input_.byte();
    if (action >= 0xf0) return;  // lost
    if (action >= 0xc0) change(path, bytes);
    inner_.send_one(path, bytes, now);
    if (action >= 0xb0 && action < 0xc0) inner_.send_one(path, bytes, now);
    if (action >= 0xa0 && action < 0xb0) held_ = bytes;
    if (action >= 0x90 && action < 0xa0 && !held_.empty()) inner_.send_one(path, held_, now);
  }
  // One byte of the headers, mostly; the size, sometimes.
  void change(const Path& path, std::vector<std::byte>& bytes) {
    const std::uint8_t where = input_.byte();
    if (where == 0xff && bytes.size() > 20) bytes.resize(bytes.size() - 4);
    bytes[where % std::min<std::size_t>(bytes.size() - kIcrcSize, 20)] = std::byte{input_.byte()};
    Icrc icrc(path.flow(), bytes.size(), 0, std::span(bytes).first(sizeof(Bth)));
    icrc.add(std::span(bytes).subspan(sizeof(Bth), bytes.size() - sizeof(Bth) - kIcrcSize));
    store(bytes, bytes.size() - kIcrcSize, icrc.value());
  }

  Wire& inner_;
  Input& input_;
  std::vector<std::byte> held_;
};

// A device: its own bookkeeping of what was posted.
struct Device : EngineObserver, Bell {
  Device(sim::Clock& clock, const Endpoint& address, Input& input)
      : local(address), fuzzed(wire, input), worker(context, fuzzed, *this, *this, clock, 1024) {
    key = *table.add(memory);
  }
  void on_communication(QpNumber /*qp*/) noexcept override {}
  void on_failure(QpNumber /*qp*/, ibv_wc_status /*status*/) noexcept override {}
  bool on_stray(const Received& /*datagram*/, QpNumber /*qp*/) noexcept override { return false; }
  void ring() noexcept override {}
  void set_alarm(TimePoint /*when*/) noexcept override {}

  void post_send(std::size_t length, unsigned flags) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory.data()), static_cast<std::uint32_t>(length),
                key.value()};
    ibv_send_wr wr{};
    wr.wr_id = sends_posted;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = (flags & 0x40U) != 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED | (flags & 0x80U ? IBV_SEND_SOLICITED : 0U);
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp.get(), &wr, &bad) == 0) ++sends_posted;
  }
  void post_receive(std::size_t length) {
    ibv_sge sge{std::bit_cast<std::uint64_t>(memory.data()), static_cast<std::uint32_t>(length),
                key.value()};
    ibv_recv_wr wr{};
    wr.wr_id = receives_posted;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(qp.get(), &wr, &bad) == 0) ++receives_posted;
  }
  bool poll() {
    std::array<ibv_wc, 16> completions;
    const int n = ibv_poll_cq(&worker, 16, completions.data());
    for (const ibv_wc& wc : std::span(completions).first(static_cast<std::size_t>(n))) {
      std::uint64_t& next = wc.opcode == IBV_WC_SEND ? sends_done : receives_done;
      require(wc.wr_id == next++);
      require(wc.byte_len <= memory.size());
    }
    return n > 0;
  }

  Endpoint local;
  sim::SimWire wire;
  FuzzedWire fuzzed;
  MemoryTable table;
  ibv_context context = make_context();
  Worker worker;
  std::vector<std::byte> memory = std::vector<std::byte>(8192);
  LocalKey key;
  std::shared_ptr<QueuePair> qp;
  std::uint64_t sends_posted = 0;
  std::uint64_t sends_done = 0;
  std::uint64_t receives_posted = 0;
  std::uint64_t receives_done = 0;
};

void connect(Device& device, const Device& peer, Psn sends, Psn expects, Input& input) {
  QueuePairSetup setup;
  setup.number = QpNumber(device.local.port);
  setup.send_depth = setup.receive_depth = 16;
  setup.context = &device.context;
  setup.cq = &device.worker;
  device.qp =
      std::make_shared<QueuePair>(setup, device.worker.engine().completions(), device.table);
  device.worker.engine().add(device.qp);
  const QpNumber peer_qp(peer.local.port);
  device.qp->connect_receive(Path(device.local, peer.local), {peer_qp, expects, 256});
  RequesterConfig config;
  config.destination = peer_qp;
  config.first = sends;
  config.mtu = 256;
  config.window_limit = 2048U + input.byte() * 256U;
  config.retry_count = config.rnr_retry = input.byte() % 8U;
  device.qp->connect_send(config);
}

void settle(Device& a, Device& b, sim::Clock& clock, TimePoint until) {
  for (int i = 0; i < 2000; ++i) {
    const bool busy_a = a.poll();
    const bool busy_b = b.poll();
    if (busy_a || busy_b) continue;
    const auto next_a = a.worker.engine().deadline().value_or(TimePoint::max());
    const auto next_b = b.worker.engine().deadline().value_or(TimePoint::max());
    if (std::min(next_a, next_b) > until) break;
    clock.advance_to(std::min(next_a, next_b));
  }
  clock.advance_to(until);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  sim::Clock clock;
  Device a(clock, {*IpAddress::parse("192.0.2.1"), 0xc001, 0}, input);
  Device b(clock, {*IpAddress::parse("192.0.2.2"), 0xc002, 0}, input);
  a.wire.connect(b.wire, a.local);
  b.wire.connect(a.wire, b.local);
  const Psn first(0xfffffe);
  connect(a, b, first, Psn(7), input);
  connect(b, a, Psn(7), first, input);
  for (int steps = 0; !input.empty() && steps < 256; ++steps) {
    const std::uint8_t step = input.byte();
    Device& device = (step & 1U) != 0 ? a : b;
    switch (step >> 1U & 3U) {
      case 0:
        device.post_send(input.word() % 2048, step);
        break;
      case 1:
        device.post_receive(input.word() % 4096);
        break;
      case 2:
        settle(a, b, clock, clock.now() + std::chrono::microseconds(input.word()));
        break;
      default:
        settle(a, b, clock, clock.now() + std::chrono::milliseconds(input.byte()));
        break;
    }
  }
  for (Device* const device : {&a, &b}) {
    device->qp->to_error();
    while (device->poll()) {
    }
    require(device->sends_done == device->sends_posted);
    require(device->receives_done == device->receives_posted);
  }
  return 0;
}
