// The invariant CRC of RoCEv2 (InfiniBand Architecture vol. 1, 7.8.1 and annex A17.3.3).
//
// CRC-32 of IEEE 802.3 over eight bytes of ones (the masked LRH), the IP header, the UDP header,
// the transport headers, payload and pad, where what may change on the way is taken as ones: TOS or
// traffic class, flow label, TTL or hop limit, IPv4 and UDP checksum, and the BTH's FECN/BECN byte.
// It lies in the last four bytes of the datagram, in little-endian order, unlike everything else.
//
// IPv4's identification and flags are covered, and a UDP socket neither sets nor shows them. What
// Linux sends is known: an unconnected socket with IP_MTU_DISCOVER = IP_PMTUDISC_DO sends DF and
// identification 0, and 0, 1, 2, ... over the segments of one UDP_SEGMENT send. What was received
// is solved for: the CRC is linear, so that two CRCs that differ only because the identification
// and DF do, differ by a value that can be shifted back to just those bits; any other value means
// that something else differs. That leaves 15 of the 32 bits as the check, so the solution is
// doubted by what the sender did before (verbs/soft/ip_id.h); for IPv6 and a right guess of the
// identification all 32 count.
//
// The sums are ISA-L's crc32_gzip_refl().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/byte_order.h"
#include "core/ip.h"

namespace ipoverbs::verbs::soft {

// The masked IP and UDP headers between one pair of addresses and ports, without the fields that
// differ from datagram to datagram.
class IcrcFlow {
 public:
  IcrcFlow() = default;
  // Both addresses of one family.
  IcrcFlow(const IpAddress& source, std::uint16_t source_port, const IpAddress& destination,
           std::uint16_t destination_port);

  static constexpr std::size_t kMaxSize = 8 + 40 + 8;
  // Masked LRH, IP and UDP headers of a datagram of `datagram` bytes, written to `out`
  // (at least kMaxSize bytes); returns how many. `ip_id` is ignored for IPv6.
  std::size_t emit(std::span<std::byte> out, std::size_t datagram, std::uint16_t ip_id) const;
  [[nodiscard]] bool is_v4() const { return size_ == kSizeV4; }

 private:
  static constexpr std::uint8_t kSizeV4 = 8 + 20 + 8;
  static constexpr std::uint8_t kSizeV6 = kMaxSize;
  std::array<std::byte, kMaxSize> bytes_{};
  std::uint8_t size_ = 0;
};

// Sums one datagram.
class Icrc {
 public:
  // `datagram`: bytes from BTH to ICRC. `headers`: BTH and what follows it, at least 12 and at most
  // kMaxHeaders bytes.
  Icrc(const IcrcFlow& flow, std::size_t datagram, std::uint16_t ip_id,
       std::span<const std::byte> headers);
  void add(std::span<const std::byte> payload);
  // As it lies on the wire.
  [[nodiscard]] Le32 value() const { return Le32(crc_); }

 private:
  std::uint32_t crc_ = 0;
};

// Checks the last four bytes of `datagram` (at least 16 bytes, at most kMaxDatagram). Returns the
// identification that it was sent with (IPv6: 0), nullopt if the ICRC is wrong. `ip_id` is a guess:
// a right one makes the check cheaper and full-strength.
[[nodiscard]] std::optional<std::uint16_t> icrc_matches(const IcrcFlow& flow,
                                                        std::span<const std::byte> datagram,
                                                        std::uint16_t ip_id) noexcept;

}  // namespace ipoverbs::verbs::soft
