#include <array>
#include <string_view>

#include "verbs/soft/device.h"

namespace ipoverbs::verbs::soft {

namespace {

// In the order of Reject.
constexpr std::array<std::string_view, static_cast<std::size_t>(Reject::kCount)> kRejectNames{
    "rx_drop_too_short",       "rx_drop_too_long",      "rx_drop_bad_version",
    "rx_drop_bad_opcode",      "rx_drop_bad_pad",       "rx_drop_bad_icrc",
    "rx_drop_bad_partition",   "rx_drop_bad_queue_key", "rx_drop_unknown_qp",
    "rx_drop_wrong_transport", "rx_drop_wrong_source",  "rx_drop_wrong_state"};
static_assert(!kRejectNames.back().empty());

struct WorkerCounter {
  std::string_view name;
  Gauge EngineCounters::* counter;
};
constexpr std::array kWorkerCounters{
    WorkerCounter{"ecn_marked", &EngineCounters::marked},
    WorkerCounter{"cnp_sent", &EngineCounters::notifications_sent},
    WorkerCounter{"cnp_received", &EngineCounters::notifications_heard},
    WorkerCounter{"resent", &EngineCounters::resent},
    WorkerCounter{"probes", &EngineCounters::probes},
    WorkerCounter{"ack_timeouts", &EngineCounters::timeouts},
    WorkerCounter{"rcvd_seq_err", &EngineCounters::sequence_naks},
    WorkerCounter{"rcvd_rnr_err", &EngineCounters::rnr_naks},
    WorkerCounter{"duplicate_request", &EngineCounters::duplicates},
    WorkerCounter{"out_of_seq_request", &EngineCounters::out_of_sequence},
};

struct WireCounter {
  std::string_view name;
  Gauge UdpCounters::* counter;
};
constexpr std::array kWireCounters{
    WireCounter{"tx_datagrams", &UdpCounters::segments},
    WireCounter{"tx_sends", &UdpCounters::sends},
    WireCounter{"tx_drop_too_long", &UdpCounters::too_long},
    WireCounter{"tx_drop_no_room", &UdpCounters::no_room},
    WireCounter{"tx_drop_unreachable", &UdpCounters::unreachable},
    WireCounter{"tx_drop_forbidden", &UdpCounters::forbidden},
    WireCounter{"tx_drop_error", &UdpCounters::send_errors},
    WireCounter{"tx_gso_refused", &UdpCounters::refused_runs},
    WireCounter{"tx_gso_off", &UdpCounters::segmentation_off},
    WireCounter{"tx_class_refused", &UdpCounters::refused_classes},
    WireCounter{"rx_error", &UdpCounters::receive_errors},
};

struct FaultName {
  std::string_view out, in;
  Gauge FaultCounters::* counter;
};
constexpr std::array kFaultNames{
    FaultName{"fault_out_dropped", "fault_in_dropped", &FaultCounters::dropped},
    FaultName{"fault_out_corrupted", "fault_in_corrupted", &FaultCounters::corrupted},
    FaultName{"fault_out_duplicated", "fault_in_duplicated", &FaultCounters::duplicated},
    FaultName{"fault_out_reordered", "fault_in_reordered", &FaultCounters::reordered},
    FaultName{"fault_out_marked", "fault_in_marked", &FaultCounters::marked},
    FaultName{"fault_out_delayed", "fault_in_delayed", &FaultCounters::delayed},
};

}  // namespace

std::vector<CounterValue> SoftDevice::counters() const {
  std::vector<CounterValue> values;
  const GsiCounters& management = port_.counters();
  values.push_back({"rx_datagrams", management.received});
  for (const auto* queue : parts_.queues) values[0].value += queue->counters().datagrams.value();
  for (std::size_t i = 0; i < kRejectNames.size(); ++i) {
    std::uint64_t sum = management.rejects.at(i);
    for (const auto* queue : parts_.queues) sum += queue->counters().rejects.at(i).value();
    values.push_back({kRejectNames.at(i), sum});
  }
  values.push_back({"rx_drop_buffer_full", parts_.ports.overflows()});
  for (const WireCounter& one : kWireCounters) {
    std::uint64_t sum = (management_.counters().*one.counter).value();
    for (const auto* queue : parts_.queues) sum += (queue->wire_counters().*one.counter).value();
    values.push_back({one.name, sum});
  }
  for (const WorkerCounter& one : kWorkerCounters) {
    std::uint64_t sum = 0;
    for (const auto* queue : parts_.queues) sum += (queue->counters().*one.counter).value();
    values.push_back({one.name, sum});
  }
  if (!faulty_management_) return values;
  for (const Direction direction : {Direction::Out, Direction::In}) {
    for (const FaultName& fault : kFaultNames) {
      std::uint64_t sum = (faulty_management_->counters(direction).*fault.counter).value();
      for (const auto* queue : parts_.queues) {
        sum += (queue->faulty_wire()->counters(direction).*fault.counter).value();
      }
      values.push_back({direction == Direction::Out ? fault.out : fault.in, sum});
    }
  }
  return values;
}

}  // namespace ipoverbs::verbs::soft
