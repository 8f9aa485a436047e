#include "tests/transport/segment_reference.h"

namespace ipoverbs::transport::reference {

namespace {

using support::Bytes;

std::size_t number(const Bytes& p, std::size_t at, std::size_t bytes) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < bytes; ++i) n = n << 8 | std::to_integer<std::size_t>(p[at + i]);
  return n;
}

void put(Bytes& p, std::size_t at, std::size_t bytes, std::size_t n) {
  for (std::size_t i = bytes; i-- > 0; n >>= 8) p[at + i] = static_cast<std::byte>(n);
}

// RFC 1071, section 4.1, word by word.
std::size_t ones_complement_sum(const Bytes& p, std::size_t from, std::size_t to, std::size_t sum) {
  for (std::size_t i = from; i < to; i += 2) sum += number(p, i, 1) << 8;
  for (std::size_t i = from + 1; i < to; i += 2) sum += number(p, i, 1);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

}  // namespace

std::vector<Bytes> segments(const Bytes& packet, const tun::VirtioNetHeader& header) {
  const std::size_t transport = header.csum_start.value();
  const bool udp = header.gso_type == tun::VIRTIO_NET_HDR_GSO_UDP_L4;
  const std::size_t headers = transport + (udp ? 8 : 4 * (number(packet, transport + 12, 1) >> 4));
  const std::size_t field = transport + header.csum_offset.value();
  const std::size_t step = header.gso_size.value();
  std::vector<Bytes> all;
  for (std::size_t from = headers; from < packet.size() || all.empty(); from += step) {
    const bool last = from + step >= packet.size();
    const std::size_t to = last ? packet.size() : from + step;
    Bytes s(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(headers));
    s.insert(s.end(), packet.begin() + static_cast<std::ptrdiff_t>(from),
             packet.begin() + static_cast<std::ptrdiff_t>(to));
    if (number(s, 0, 1) >> 4 == 4) {
      put(s, 2, 2, s.size());
      put(s, 4, 2, number(packet, 4, 2) + all.size());
      put(s, 10, 2, 0);
      put(s, 10, 2, ~ones_complement_sum(s, 0, (number(s, 0, 1) & 15) * 4, 0));
    } else {
      put(s, 4, 2, s.size() - 40);
    }
    if (udp) {
      put(s, transport + 4, 2, s.size() - transport);
    } else {
      put(s, transport + 4, 4, number(packet, transport + 4, 4) + (from - headers));
      std::size_t flags = number(s, transport + 13, 1);
      if (from > headers) flags &= 0x7f;  // CWR
      if (!last) flags &= 0xf6;           // PSH, FIN
      put(s, transport + 13, 1, flags);
    }
    // The pseudo-header as the super-packet has it, its length being another.
    std::size_t pseudo = number(packet, field, 2) + (s.size() - transport);
    pseudo += 0xffff - (packet.size() - transport) % 0xffff;
    put(s, field, 2, 0);
    const std::size_t sum = ones_complement_sum(s, transport, s.size(), pseudo);
    put(s, field, 2, sum == 0xffff ? 0xffff : ~sum);
    all.push_back(s);
  }
  return all;
}

}  // namespace ipoverbs::transport::reference
