#include "tests/verbs/soft/sim_network.h"

#include <algorithm>
#include <array>
#include <utility>

#include "verbs/soft/ecn.h"

namespace ipoverbs::verbs::soft::sim {

namespace {

Endpoint endpoint(bool v6, bool first) {
  const char* const text =
      v6 ? (first ? "2001:db8::1" : "2001:db8::2") : (first ? "192.0.2.1" : "192.0.2.2");
  return {*IpAddress::parse(text), static_cast<std::uint16_t>(first ? 0xc001 : 0xc002), 0};
}

}  // namespace

// Like UDP_SEGMENT and UDP_GRO: a run is carried as one, its identifications counting from 0.
void SimWire::send(const Burst& burst, TimePoint now) noexcept {
  constexpr std::size_t kLargestSend = 65507;
  const auto segments = burst.segments();
  for (std::size_t first = 0; first < segments.size();) {
    const std::size_t count = burst.run_length(first, kLargestSend);
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const Segment& segment = segments[first + i];
      const std::size_t at = bytes.size();
      bytes.resize(at + segment.size());
      const std::span datagram = std::span(bytes).subspan(at);
      burst.write(segment, static_cast<std::uint16_t>(i), datagram);
      if (tap) tap(datagram);
    }
    carry(std::move(bytes), count == 1 ? 0 : segments[first].size(),
          segments[first].path->traffic_class(), now);
    first += count;
  }
}

void SimWire::send_one(const Path& path, std::span<const std::byte> datagram,
                       TimePoint now) noexcept {
  if (tap) tap(datagram);
  carry({datagram.begin(), datagram.end()}, 0, path.traffic_class(), now);
}

void SimWire::carry(std::vector<std::byte> bytes, std::size_t segment, std::uint8_t traffic_class,
                    TimePoint now) {
  const auto bits = static_cast<std::int64_t>(bytes.size()) * 8;
  sent_bytes_ += bytes.size();
  const Duration queued = std::max(free_at_, now) - now;
  longest_queue_ = std::max(longest_queue_, queued);
  if (queued > mark_beyond_ && ecn_of(traffic_class) != Ecn::NotCapable) {
    traffic_class = with_ecn(traffic_class, Ecn::Congested);
  }
  free_at_ = std::max(free_at_, now) + Duration(bits / kBitsPerNanosecond);
  if (peer_->backlog_ + bytes.size() > peer_->buffer_limit_) {
    ++peer_->overflows_;
    return;
  }
  peer_->backlog_ += bytes.size();
  peer_->largest_backlog_ = std::max(peer_->largest_backlog_, peer_->backlog_);
  peer_->arriving_.push_back({free_at_ + latency_, std::move(bytes), segment, traffic_class});
}

std::span<const Received> SimWire::receive(TimePoint now) noexcept {
  arrived_.clear();
  received_.clear();
  constexpr std::size_t kBatch = 16;
  while (!arriving_.empty() && arriving_.front().at <= now && arrived_.size() < kBatch) {
    backlog_ -= arriving_.front().bytes.size();
    arrived_.push_back(std::move(arriving_.front()));
    arriving_.pop_front();
  }
  for (const Arrival& arrival : arrived_) {
    received_.push_back({arrival.bytes, arrival.segment, peer_->local_, arrival.traffic_class});
  }
  return received_;
}

std::optional<TimePoint> SimWire::deadline() const noexcept {
  if (arriving_.empty()) return std::nullopt;
  return arriving_.front().at;
}

End::End(Clock& clock, const Endpoint& address, const std::optional<FaultPlan>& faults,
         std::uint64_t salt, std::uint32_t depth)
    : local(address),
      faulty(faults ? std::optional<FaultyWire>(std::in_place, wire, *faults, salt) : std::nullopt),
      worker(context, faulty ? static_cast<Wire&>(*faulty) : wire, *this, *this, clock, depth) {}

std::pair<std::span<std::byte>, LocalKey> End::memory(std::size_t size) {
  memories_.push_back(std::make_unique<std::vector<std::byte>>(size));
  const std::span<std::byte> bytes = *memories_.back();
  return {bytes, table.add(bytes).value()};
}

QueuePair& End::add_queue_pair(const QueuePairSetup& setup) {
  QueuePairSetup with_context = setup;
  with_context.context = &context;
  with_context.cq = &worker;
  const auto qp = std::make_shared<QueuePair>(with_context, worker.engine().completions(), table);
  worker.engine().add(qp);
  return *qp;
}

Network::Network(const NetworkConfig& config)
    : a(clock, endpoint(config.v6, true), config.faults_a, 1, config.depth),
      b(clock, endpoint(config.v6, false), config.faults_b, 2, config.depth) {
  a.wire.connect(b.wire, a.local);
  b.wire.connect(a.wire, b.local);
}

void Network::connect(QueuePair& at_a, QueuePair& at_b, const Connect& how) {
  const auto one = [&](QueuePair& qp, const End& from, const QueuePair& to, const End& at,
                       Psn sends, Psn expects) {
    qp.connect_receive(Path(from.local, at.local, with_ecn(0, Ecn::Capable0)),
                       {to.number(), expects, how.mtu, how.min_rnr_timer, how.tuning.ack_delay});
    RequesterConfig config;
    config.destination = to.number();
    config.first = sends;
    config.mtu = how.mtu;
    config.retry_count = how.retry_count;
    config.rnr_retry = how.rnr_retry;
    config.ack_timeout = how.ack_timeout;
    config.window_limit = how.window_limit;
    config.tuning = how.tuning;
    qp.connect_send(config);
  };
  one(at_a, a, at_b, b, how.first_a, how.first_b);
  one(at_b, b, at_a, a, how.first_b, how.first_a);
}

bool Network::poll(End& end, const Completions& on_completions) {
  std::array<ibv_wc, 16> completions;
  const int n = ibv_poll_cq(&end.worker, static_cast<int>(completions.size()), completions.data());
  if (n > 0) on_completions(end, std::span(completions).first(static_cast<std::size_t>(n)));
  return n > 0;
}

void Network::run(const Completions& on_completions, TimePoint until,
                  const std::function<bool()>& done) {
  while (!done || !done()) {
    const bool busy_a = poll(a, on_completions);
    const bool busy_b = poll(b, on_completions);
    if (busy_a || busy_b) continue;
    const auto next_a = a.worker.engine().deadline();
    const auto next_b = b.worker.engine().deadline();
    if (!next_a && !next_b) return;
    const TimePoint next =
        std::min(next_a.value_or(TimePoint::max()), next_b.value_or(TimePoint::max()));
    if (next > until) return;
    clock.advance_to(next);
  }
}

}  // namespace ipoverbs::verbs::soft::sim
