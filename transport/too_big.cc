#include "transport/too_big.h"

#include <netinet/in.h>

#include <algorithm>

#include "core/byte_order.h"
#include "csum/packet.h"
#include "transport/ip_header.h"
#include "transport/packet.h"
#include "tun/virtio_net.h"

namespace ipoverbs::transport {

namespace {

constexpr std::size_t kIcmpHeader = 8;
constexpr std::size_t kMaxAnswer4 = 576;
constexpr std::uint16_t kIcmpChecksum = 2;
constexpr std::size_t kIcmpMtu4 = 6;  // RFC 1191, section 4
constexpr std::size_t kIcmpMtu6 = 4;  // RFC 4443, section 3.2

// RFC 1122, section 3.2.2: destination unreachable, source quench, redirect, time exceeded,
// parameter problem. RFC 4443, section 2.1: types below 128.
bool is_icmp_error(std::uint8_t protocol, std::uint8_t type) {
  if (protocol == IPPROTO_ICMPV6) return type < 128;
  return protocol == IPPROTO_ICMP &&
         (type == 3 || type == 4 || type == 5 || type == 11 || type == 12);
}

bool may_answer(std::span<const std::byte> packet) {
  const auto addresses = read_addresses(packet);
  if (!addresses || addresses->is_for_all()) return false;
  if (ip_version(packet) == 4) {
    const auto fragment = load<Be16>(packet, 6).value();
    constexpr std::uint16_t kDontFragment = 0x4000;
    if ((fragment & kDontFragment) == 0 || (fragment & 0x1fff) != 0) return false;
  }
  const tun::TransportHeader at = tun::find_transport(packet);
  // Unreadable or a fragment: of IPv6 the first one is not told from the others.
  if (!at.present || at.offset >= packet.size()) return false;
  return !is_icmp_error(at.protocol, std::to_integer<std::uint8_t>(packet[at.offset]));
}

// Both lie in a packet of IPv4 and IPv6 alike: source, then destination. The answer goes back.
void put_addresses(std::span<std::byte> header, std::span<const std::byte> packet,
                   std::size_t offset, std::size_t length) {
  std::ranges::copy(packet.subspan(offset + length, length), header.subspan(offset).begin());
  std::ranges::copy(packet.subspan(offset, length), header.subspan(offset + length).begin());
}

std::size_t write_icmp4(std::span<std::byte> out, std::span<const std::byte> packet,
                        std::size_t largest, IpMtu mtu) {
  const std::size_t headers = kIpv4Header + kIcmpHeader;
  const std::size_t quoted = std::min(packet.size(), kMaxAnswer4 - headers);
  const std::span<std::byte> answer = out.first(headers + quoted);
  std::ranges::fill(answer.first(headers), std::byte{0});
  store(answer, 0, Be16(0x45c0));  // internetwork control (RFC 1812, section 4.3.2.5)
  store(answer, 2, Be16(static_cast<std::uint16_t>(answer.size())));
  answer[8] = std::byte{64};
  answer[9] = std::byte{IPPROTO_ICMP};
  put_addresses(answer, packet, 12, 4);
  store(answer, 10, csum::ipv4_header_checksum(answer.first(kIpv4Header)));
  const std::span<std::byte> icmp = answer.subspan(kIpv4Header);
  store(icmp, 0, Be16(0x0304));
  store(icmp, kIcmpMtu4, Be16(static_cast<std::uint16_t>(mtu.value())));
  const std::span<std::byte> quote = icmp.subspan(kIcmpHeader);
  std::ranges::copy(packet.first(quoted), quote.begin());
  store(quote, 2, Be16(static_cast<std::uint16_t>(largest)));
  store(quote, 10, csum::ipv4_header_checksum(quote.first(ipv4_header_length(packet))));
  return answer.size();
}

std::size_t write_icmp6(std::span<std::byte> out, std::span<const std::byte> packet,
                        std::size_t largest, IpMtu mtu) {
  const std::size_t headers = kIpv6Header + kIcmpHeader;
  const std::size_t quoted = std::min(packet.size(), kMaxTooBig - headers);
  const std::span<std::byte> answer = out.first(headers + quoted);
  std::ranges::fill(answer.first(headers), std::byte{0});
  answer[0] = std::byte{0x60};
  store(answer, 4, Be16(static_cast<std::uint16_t>(kIcmpHeader + quoted)));
  answer[6] = std::byte{IPPROTO_ICMPV6};
  answer[7] = std::byte{64};
  put_addresses(answer, packet, 8, 16);
  const std::span<std::byte> icmp = answer.subspan(kIpv6Header);
  icmp[0] = std::byte{2};
  store(icmp, kIcmpMtu6, Be32(mtu.value()));
  const std::span<std::byte> quote = icmp.subspan(kIcmpHeader);
  std::ranges::copy(packet.first(quoted), quote.begin());
  store(quote, 4, Be16(static_cast<std::uint16_t>(largest - kIpv6Header)));
  return answer.size();
}

}  // namespace

std::size_t write_too_big(std::span<std::byte> out, std::span<const std::byte> packet,
                          std::size_t largest, IpMtu mtu) noexcept {
  if (!may_answer(packet)) return 0;
  const bool v4 = ip_version(packet) == 4;
  const std::size_t length =
      v4 ? write_icmp4(out, packet, largest, mtu) : write_icmp6(out, packet, largest, mtu);
  const std::size_t start = v4 ? kIpv4Header : kIpv6Header;
  const auto done =
      csum::complete(out.first(length), {static_cast<std::uint16_t>(start), kIcmpChecksum});
  return done == csum::Completion::done ? length : 0;
}

}  // namespace ipoverbs::transport
