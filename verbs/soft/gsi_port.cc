#include "verbs/soft/gsi_port.h"

#include <utility>

namespace ipoverbs::verbs::soft {

void GsiPort::send(const IpAddress& destination, const Mad& mad, TimePoint now) noexcept {
  const Path path(local_, Endpoint{destination, kRocePort, local_.scope});
  std::array<std::byte, kGsiDatagramSize> datagram;
  emit_gsi(datagram, mad, next_, path.flow(), 0);
  next_ = next_.next();
  ++counters_.sent;
  wire_.send_one(path, datagram, now);
}

std::optional<std::span<const std::byte, kMadSize>> GsiPort::open(
    std::span<const std::byte> datagram, const Endpoint& source) noexcept {
  ++counters_.received;
  const auto reject = [this](Reject why) {
    ++counters_.rejects.at(std::to_underlying(why));
    return std::nullopt;
  };
  const auto packet = parse(datagram);
  if (!packet) return reject(packet.error());
  const auto mad = mad_of(*packet);
  if (!mad) return reject(mad.error());
  const IcrcFlow flow(source.address, source.port, local_.address, kRocePort);
  if (!icrc_matches(flow, datagram, 0)) return reject(Reject::BadIcrc);
  return *mad;
}

}  // namespace ipoverbs::verbs::soft
