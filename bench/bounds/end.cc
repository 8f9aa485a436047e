#include "bench/bounds/end.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::bounds {

End::End(const tun::Config& config, bool superpackets, Logger& logger)
    : interface_(tun::Interface::create(config, logger)), queue_(interface_.queues().front()) {
  if (!superpackets) interface_.set_read_offloads({});
}

std::size_t End::read(std::span<std::byte> record) {
  const ssize_t n = ::read(queue_, record.data(), record.size());
  if (n > 0) {
    ++packets_read_;
    bytes_read_ += static_cast<std::size_t>(n);
    return static_cast<std::size_t>(n);
  }
  if (n < 0 && errno != EAGAIN) {
    throw SystemError(errno, fmt::format("read from {}", interface_.name()));
  }
  return 0;
}

void End::write(std::span<const std::byte> record) noexcept {
  const bool taken = ::write(queue_, record.data(), record.size()) >= 0;
  ++(taken ? packets_written_ : packets_refused_);
}

void End::report() const {
  fmt::print("{} packets, {} bytes read, {} packets written, {} refused\n", packets_read_,
             bytes_read_, packets_written_, packets_refused_);
}

}  // namespace ipoverbs::bounds
