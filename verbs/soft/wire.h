// Wire: datagrams out and in. The UDP socket is one, a simulated wire another, and the fault plan
// a third that stands before either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/clock.h"
#include "core/ip.h"
#include "verbs/soft/burst.h"
#include "verbs/soft/path.h"

namespace ipoverbs::verbs::soft {

// One datagram, or several of one source that the kernel handed over as one (UDP_GRO).
struct Received {
  std::span<const std::byte> bytes;
  std::size_t segment = 0;  // bytes of each datagram but a shorter last one; 0: there is but one
  Endpoint source;
  std::uint8_t traffic_class = 0;

  [[nodiscard]] std::size_t datagrams() const {
    return segment == 0 ? 1 : (bytes.size() + segment - 1) / segment;
  }
  // The `i`-th of them.
  [[nodiscard]] std::span<const std::byte> datagram(std::size_t i) const {
    if (segment == 0) return bytes;
    const std::span from = bytes.subspan(i * segment);
    return from.first(from.size() < segment ? from.size() : segment);
  }
};

class Wire {
 public:
  virtual ~Wire() = default;
  // Sends all of `burst`; what can't be sent is lost.
  virtual void send(const Burst& burst, TimePoint now) noexcept = 0;
  // Sends one datagram whose ICRC is that for IPv4 identification 0.
  virtual void send_one(const Path& path, std::span<const std::byte> datagram,
                        TimePoint now) noexcept = 0;
  // What has come, at most a batch; valid until the next call. Empty: nothing for now.
  [[nodiscard]] virtual std::span<const Received> receive(TimePoint now) noexcept = 0;
  // When receive() wants to be called though nothing comes in; nullopt: never.
  [[nodiscard]] virtual std::optional<TimePoint> deadline() const noexcept { return std::nullopt; }
};

}  // namespace ipoverbs::verbs::soft
