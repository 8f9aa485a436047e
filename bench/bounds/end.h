// End: a TUN interface made as the daemon makes its own, and what a bound does with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/log.h"
#include "tun/interface.h"

namespace ipoverbs::bounds {

// How many packets go one way before the other way has its turn: as many as a worker of the daemon
// reads.
inline constexpr unsigned kBatch = 64;
// A busy loop looks for its end once in so many turns.
inline constexpr unsigned kTurnsUnwatched = 256;

class End {
 public:
  // Without `superpackets` what is read is whole packets of the MTU with complete checksums.
  // Throws what Interface::create() does.
  End(const tun::Config& config, bool superpackets, Logger& logger);

  [[nodiscard]] int fd() const { return queue_; }
  // Reads one packet behind its virtio header; 0 if there is none. `record` holds kMaxRecord bytes.
  // Throws SystemError if the interface is gone.
  [[nodiscard]] std::size_t read(std::span<std::byte> record);
  // Writes what the other end has read, header and all: both ends are one kernel, which is
  // believed. Counts what it refuses.
  void write(std::span<const std::byte> record) noexcept;

  // One line: what was read, written and refused.
  void report() const;

 private:
  tun::Interface interface_;
  int queue_;
  std::uint64_t packets_read_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t packets_written_ = 0;
  std::uint64_t packets_refused_ = 0;
};

}  // namespace ipoverbs::bounds
