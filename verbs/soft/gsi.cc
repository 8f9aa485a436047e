#include "verbs/soft/gsi.h"

#include <cassert>

namespace ipoverbs::verbs::soft {

namespace {
constexpr std::uint16_t kPartitionMask = 0x7fff;  // without the membership bit
}

void emit_gsi(std::span<std::byte, kGsiDatagramSize> out, std::span<const std::byte, kMadSize> mad,
              Psn psn, const IcrcFlow& flow, std::uint16_t ip_id) {
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(Opcode::UdSendOnly);
  packet.bth.destination = Be24(kGeneralServicesQp.value());
  packet.bth.sequence = Be24(psn.value());
  packet.deth.queue_key = Be32(kQp1Key);
  packet.deth.source = Be24(kGeneralServicesQp.value());
  packet.payload = mad;
  [[maybe_unused]] const std::size_t written = emit(out, packet, flow, ip_id);
  assert(written == kGsiDatagramSize);
}

std::expected<std::span<const std::byte, kMadSize>, Reject> mad_of(const Packet& packet) noexcept {
  if (packet.bth.qp() != kGeneralServicesQp) {
    return std::unexpected(Reject::UnknownQp);
  }
  if (packet.opcode() != Opcode::UdSendOnly) {
    return std::unexpected(Reject::WrongTransport);
  }
  if ((packet.bth.partition.value() & kPartitionMask) != kPartitionMask) {
    return std::unexpected(Reject::BadPartition);
  }
  if (packet.deth.queue_key.value() != kQp1Key) {
    return std::unexpected(Reject::BadQueueKey);
  }
  if (packet.payload.size() < kMadSize) {
    return std::unexpected(Reject::TooShort);
  }
  if (packet.payload.size() > kMadSize) {
    return std::unexpected(Reject::TooLong);
  }
  return packet.payload.first<kMadSize>();
}

}  // namespace ipoverbs::verbs::soft
