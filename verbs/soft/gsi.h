// Management datagrams on the general services interface, QP1: how a MAD travels in a RoCEv2
// packet (InfiniBand Architecture vol. 1, 13.5.1 and annex A17).
//
//   BTH (UD SEND only, QP1) | DETH (well-known Q_Key, from QP1) | MAD 256 | ICRC
//
// There is no subnet administration on Ethernet and nobody checks the PSN of QP1; a counter serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "verbs/soft/icrc.h"
#include "verbs/soft/mad.h"
#include "verbs/soft/psn.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

// UDP payload of every MAD.
inline constexpr std::size_t kGsiDatagramSize = sizeof(Bth) + sizeof(Deth) + kMadSize + kIcrcSize;
static_assert(kGsiDatagramSize == 280);

// Writes the datagram, ICRC included, as it has to leave with IPv4 identification `ip_id` (ignored
// for IPv6).
void emit_gsi(std::span<std::byte, kGsiDatagramSize> out, std::span<const std::byte, kMadSize> mad,
              Psn psn, const IcrcFlow& flow, std::uint16_t ip_id);

// The MAD in a packet that parse() took apart; it lies in the datagram. Refuses what is not a UD
// SEND of one MAD to QP1 with its Q_Key in the default partition, full or limited member.
[[nodiscard]] std::expected<std::span<const std::byte, kMadSize>, Reject> mad_of(
    const Packet& packet) noexcept;

}  // namespace ipoverbs::verbs::soft
