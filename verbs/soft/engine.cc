#include "verbs/soft/engine.h"

#include <algorithm>
#include <array>

#include "verbs/soft/ecn.h"

namespace ipoverbs::verbs::soft {

namespace {

template <class Counters>
struct Total {
  Gauge EngineCounters::* sum;
  std::uint64_t Counters::* counter;
};
constexpr std::array kSent{
    Total<RequesterCounters>{&EngineCounters::resent, &RequesterCounters::resent},
    Total<RequesterCounters>{&EngineCounters::probes, &RequesterCounters::probes},
    Total<RequesterCounters>{&EngineCounters::timeouts, &RequesterCounters::timeouts},
    Total<RequesterCounters>{&EngineCounters::sequence_naks, &RequesterCounters::sequence_naks},
    Total<RequesterCounters>{&EngineCounters::rnr_naks, &RequesterCounters::rnr_naks},
    Total<RequesterCounters>{&EngineCounters::notifications_heard,
                             &RequesterCounters::notifications},
};
constexpr std::array kReceived{
    Total<ResponderCounters>{&EngineCounters::duplicates, &ResponderCounters::duplicates},
    Total<ResponderCounters>{&EngineCounters::out_of_sequence, &ResponderCounters::out_of_sequence},
    Total<ResponderCounters>{&EngineCounters::notifications_sent,
                             &ResponderCounters::notifications},
};

// Adds to the sums what `now` has beyond `counted`.
template <class Counters, std::size_t n>
void add_up(EngineCounters& sums, const std::array<Total<Counters>, n>& totals, const Counters& now,
            Counters& counted) {
  for (const auto& total : totals) {
    const std::uint64_t more = now.*total.counter - counted.*total.counter;
    if (more > 0) (sums.*total.sum).add(more);
  }
  counted = now;
}

}  // namespace

Engine::Engine(Wire& wire, EngineObserver& observer, std::uint32_t depth)
    : wire_(wire), observer_(observer), completions_(depth) {}

void Engine::add(std::shared_ptr<QueuePair> qp) {
  const std::uint32_t number = qp->qp_num;
  queue_pairs_.insert_or_assign(number, std::move(qp));
  // Room for all of them, so that touch() does not allocate.
  touched_.reserve(queue_pairs_.size());
}

void Engine::remove(QpNumber number) {
  const auto found = queue_pairs_.find(number.value());
  if (found == queue_pairs_.end()) return;
  count(*found->second);
  std::erase(touched_, found->second.get());
  queue_pairs_.erase(found);
}

QueuePair* Engine::find(QpNumber number) const {
  const auto found = queue_pairs_.find(number.value());
  return found == queue_pairs_.end() ? nullptr : found->second.get();
}

void Engine::touch(QueuePair& qp) noexcept {
  if (qp.touched) return;
  qp.touched = true;
  touched_.push_back(&qp);
}

std::uint32_t Engine::poll(std::span<ibv_wc> out, TimePoint now) noexcept {
  if (completions_.empty()) progress(now);
  return completions_.pop(out);
}

int Engine::post_send(QueuePair& qp, ibv_send_wr* list, ibv_send_wr** bad, TimePoint now) noexcept {
  const int error = qp.post_send(list, bad);
  if (find(qp.number()) != &qp) return error;
  touch(qp);
  transmit(now);
  return error;
}

void Engine::progress(TimePoint now) noexcept {
  for (const Received& received : wire_.receive(now)) receive(received, now);
  run_timers(now);
  transmit(now);
}

void Engine::receive(const Received& received, TimePoint now) noexcept {
  const std::size_t count = received.datagrams();
  counters_.datagrams.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto reject = dispatch(received, i, now);
    if (reject) counters_.rejects[static_cast<std::size_t>(*reject)].add();
  }
}

std::optional<Reject> Engine::dispatch(const Received& received, std::size_t i,
                                       TimePoint now) noexcept {
  const std::span datagram = received.datagram(i);
  const auto packet = parse(datagram);
  if (!packet) return packet.error();
  QueuePair* const qp = find(packet->bth.qp());
  if (qp == nullptr) {
    const Received one{datagram, 0, received.source, received.traffic_class};
    if (observer_.on_stray(one, packet->bth.qp())) return std::nullopt;
    return Reject::UnknownQp;
  }
  const bool was_heard = qp->heard();
  const ibv_qp_state was = qp->state;
  if (const auto reject = qp->receive(*packet, received, i, now)) return reject;
  if (ecn_of(received.traffic_class) == Ecn::Congested) counters_.marked.add();
  touch(*qp);
  if (!was_heard && qp->heard()) observer_.on_communication(qp->number());
  report_failure(*qp, was);
  return std::nullopt;
}

void Engine::report_failure(const QueuePair& qp, ibv_qp_state was) noexcept {
  if (was != IBV_QPS_ERR && qp.state == IBV_QPS_ERR) {
    observer_.on_failure(qp.number(), qp.cause());
  }
}

void Engine::run_timers(TimePoint now) noexcept {
  if (!earliest_ || now < *earliest_) return;
  earliest_.reset();
  for (const auto& [number, qp] : queue_pairs_) {
    const auto due = qp->deadline();
    if (!due || *due > now) {
      note_deadline(*qp);
      continue;
    }
    const ibv_qp_state was = qp->state;
    qp->on_timer(now);
    report_failure(*qp, was);
    touch(*qp);
  }
}

void Engine::note_deadline(const QueuePair& qp) noexcept {
  const auto due = qp.deadline();
  if (due && (!earliest_ || *due < *earliest_)) earliest_ = due;
}

void Engine::count(QueuePair& qp) noexcept {
  add_up(counters_, kSent, qp.requester().counters(), qp.sent_counted);
  add_up(counters_, kReceived, qp.responder().counters(), qp.received_counted);
}

void Engine::flush_burst(TimePoint now) noexcept {
  if (burst_.empty()) return;
  wire_.send(burst_, now);
  burst_.clear();
}

void Engine::transmit(TimePoint now) noexcept {
  while (!touched_.empty()) {
    std::size_t unfinished = 0;
    for (QueuePair* const qp : touched_) {
      const ibv_qp_state was = qp->state;
      qp->transmit(now, burst_);
      report_failure(*qp, was);
      if (burst_.has_room()) {
        qp->touched = false;
        note_deadline(*qp);
        count(*qp);
      } else {
        flush_burst(now);
        touched_[unfinished++] = qp;
      }
    }
    touched_.resize(unfinished);
  }
  flush_burst(now);
}

std::optional<TimePoint> Engine::deadline() const noexcept {
  const auto wire = wire_.deadline();
  if (!earliest_ || (wire && *wire < *earliest_)) return wire;
  return earliest_;
}

}  // namespace ipoverbs::verbs::soft
