#include "verbs/soft/icrc.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <isa-l/crc.h>

#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320;  // reflected: bit 31 is x^0
constexpr std::size_t kMaskedLrh = 8;
constexpr std::size_t kIpAt = kMaskedLrh;
constexpr std::size_t kMaskedBthByte = 4;
// Of IPv4: how many bytes from identification to fragment offset, and what follows them up to BTH.
constexpr std::size_t kIdAndFlags = 4;
constexpr std::size_t kAfterFlagsV4 = 12 + 8;
constexpr std::uint8_t kDontFragment = 0x40;  // in the byte of the flags

std::uint32_t crc32(std::uint32_t seed, std::span<const std::byte> bytes) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// a * b mod the polynomial.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (unsigned i = 0; i < 32; ++i) {
    product ^= (a & 0x80000000U) != 0 ? b : 0;
    a <<= 1U;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kPolynomial : 0);
  }
  return product;
}

// kBack[n] = x^(-8n): multiplying by it takes n bytes' worth of shifting back.
constexpr std::size_t kMaxBack = kIdAndFlags + kAfterFlagsV4 + kMaxDatagram;
constexpr auto kBack = [] {
  std::array<std::uint32_t, kMaxBack + 1> table{};
  std::uint32_t power = 0x80000000;
  for (std::uint32_t& entry : table) {
    entry = power;
    for (int bit = 0; bit < 8; ++bit) {
      power = (power & 0x80000000U) != 0 ? (power ^ kPolynomial) << 1U | 1U : power << 1U;
    }
  }
  return table;
}();

// What two IPv4 headers must differ by in identification and DF, and in nothing else, for the CRCs
// of two datagrams of `datagram` bytes to differ by `difference`. nullopt: something else does.
std::optional<std::uint16_t> solve_identification(std::uint32_t difference, std::size_t datagram) {
  const std::size_t shifted = kIdAndFlags + kAfterFlagsV4 + datagram - kIcrcSize;
  const std::uint32_t bits = multiply(difference, kBack[shifted]);
  // The first byte on the wire is the lowest here: identification, flags, fragment offset.
  if ((bits & ~(0xffffU | std::uint32_t{kDontFragment} << 16U)) != 0) return std::nullopt;
  return static_cast<std::uint16_t>((bits & 0xffU) << 8U | (bits >> 8U & 0xffU));
}

}  // namespace

IcrcFlow::IcrcFlow(const IpAddress& source, std::uint16_t source_port, const IpAddress& destination,
                   std::uint16_t destination_port)
    : size_(source.is_v4() ? kSizeV4 : kSizeV6) {
  assert(source.family() == destination.family());
  bytes_.fill(std::byte{0xff});
  const std::span ip = std::span(bytes_).subspan(kIpAt);
  const std::size_t header = source.is_v4() ? 20 : 40;
  const std::size_t addresses = source.bytes().size();
  if (source.is_v4()) {
    ip[0] = std::byte{0x45};
    store(ip, 6, Be16(0x4000));  // DF
    ip[9] = std::byte{17};       // UDP
  } else {
    ip[0] = std::byte{0x6f};
    ip[6] = std::byte{17};
  }
  std::ranges::copy(source.bytes(), ip.subspan(header - 2 * addresses).begin());
  std::ranges::copy(destination.bytes(), ip.subspan(header - addresses).begin());
  store(ip, header, Be16(source_port));
  store(ip, header + 2, Be16(destination_port));
}

std::size_t IcrcFlow::emit(std::span<std::byte> out, std::size_t datagram,
                           std::uint16_t ip_id) const {
  std::memcpy(out.data(), bytes_.data(), size_);
  const Be16 udp_length(static_cast<std::uint16_t>(datagram + 8));
  if (is_v4()) {
    store(out, kIpAt + 2, Be16(static_cast<std::uint16_t>(datagram + 28)));
    store(out, kIpAt + 4, Be16(ip_id));
  } else {
    store(out, kIpAt + 4, udp_length);
  }
  store(out, size_ - std::size_t{4}, udp_length);
  return size_;
}

Icrc::Icrc(const IcrcFlow& flow, std::size_t datagram, std::uint16_t ip_id,
           std::span<const std::byte> headers) {
  std::array<std::byte, IcrcFlow::kMaxSize + kMaxHeaders> covered;
  const std::size_t n = flow.emit(covered, datagram, ip_id);
  std::memcpy(std::span(covered).subspan(n).data(), headers.data(), headers.size());
  covered[n + kMaskedBthByte] = std::byte{0xff};
  crc_ = crc32(0, std::span(covered).first(n + headers.size()));
}

void Icrc::add(std::span<const std::byte> payload) { crc_ = crc32(crc_, payload); }

std::optional<std::uint16_t> icrc_matches(const IcrcFlow& flow, std::span<const std::byte> datagram,
                                          std::uint16_t ip_id) noexcept {
  const std::size_t covered = datagram.size() - kIcrcSize;
  Icrc icrc(flow, datagram.size(), ip_id, datagram.first(sizeof(Bth)));
  icrc.add(datagram.subspan(sizeof(Bth), covered - sizeof(Bth)));
  const std::uint32_t received = load<Le32>(datagram, covered).value();
  const std::uint32_t difference = received ^ icrc.value().value();
  if (!flow.is_v4()) return difference == 0 ? std::optional<std::uint16_t>(0) : std::nullopt;
  if (difference == 0) return ip_id;
  const auto solved = solve_identification(difference, datagram.size());
  if (!solved) return std::nullopt;
  return static_cast<std::uint16_t>(*solved ^ ip_id);
}

}  // namespace ipoverbs::verbs::soft
