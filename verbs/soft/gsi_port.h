// GsiPort: management datagrams out to a wire and in from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/soft/cm_message.h"
#include "verbs/soft/gsi.h"
#include "verbs/soft/wire.h"

namespace ipoverbs::verbs::soft {

struct GsiCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;  // datagrams, those that are rejected included
  std::array<std::uint64_t, static_cast<std::size_t>(Reject::kCount)> rejects{};
};

// One thread: the control thread.
class GsiPort {
 public:
  // `local` is the address and port that MADs are sent from. The wire outlives the port and brings
  // what comes to QP1 of that address, whatever else it may bring.
  GsiPort(Wire& wire, const Endpoint& local) : wire_(wire), local_(local) {}

  [[nodiscard]] const Endpoint& local() const { return local_; }
  void send(const IpAddress& destination, const Mad& mad, TimePoint now) noexcept;
  // Calls `take` with the source address and the MAD of what has come, kBatches of the wire at
  // most: who floods QP1 doesn't keep the control thread. The rest is for the next call.
  template <class F>
  void receive(TimePoint now, F&& take) {
    for (int turn = 0; turn < kBatches; ++turn) {
      const auto batch = wire_.receive(now);
      if (batch.empty()) return;
      for (const Received& received : batch) {
        for (std::size_t i = 0; i < received.datagrams(); ++i) {
          if (const auto mad = open(received.datagram(i), received.source)) {
            take(received.source.address, *mad);
          }
        }
      }
    }
  }
  // When receive() wants to be called though nothing comes in; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> deadline() const noexcept { return wire_.deadline(); }
  [[nodiscard]] const GsiCounters& counters() const { return counters_; }

 private:
  static constexpr int kBatches = 8;
  [[nodiscard]] std::optional<std::span<const std::byte, kMadSize>> open(
      std::span<const std::byte> datagram, const Endpoint& source) noexcept;

  Wire& wire_;
  Endpoint local_;
  Psn next_;
  GsiCounters counters_;
};

}  // namespace ipoverbs::verbs::soft
