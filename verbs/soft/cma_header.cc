#include "verbs/soft/cma_header.h"

#include <algorithm>
#include <cassert>

#include "core/byte_order.h"

namespace ipoverbs::verbs::soft {

namespace {

constexpr BitField kVersion{0, 0, 8};
constexpr BitField kIpVersion{1, 0, 4};
constexpr std::size_t kSourcePort = 2;
constexpr std::size_t kSource = 4;
constexpr std::size_t kDestination = 20;
constexpr std::size_t kAddressSize = 16;
static_assert(kDestination + kAddressSize == kCmaHeaderSize);

IpAddress address_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  return IpAddress::from_bytes(bytes.subspan(offset + kAddressSize - size, size));
}

void put_address(std::span<std::byte> bytes, std::size_t offset, const IpAddress& address) {
  const std::span<const std::byte> from = address.bytes();
  std::ranges::copy(from, bytes.subspan(offset + kAddressSize - from.size()).begin());
}

}  // namespace

std::optional<CmaHeader> parse_cma_header(std::span<const std::byte, kCmaHeaderSize> bytes) {
  const std::uint64_t ip_version = get_bits(bytes, kIpVersion);
  if (get_bits(bytes, kVersion) != 0 || (ip_version != 4 && ip_version != 6)) {
    return std::nullopt;
  }
  const std::size_t size = ip_version == 4 ? 4 : kAddressSize;
  return CmaHeader{load<Be16>(bytes, kSourcePort).value(), address_at(bytes, kSource, size),
                   address_at(bytes, kDestination, size)};
}

void emit_cma_header(const CmaHeader& header, std::span<std::byte, kCmaHeaderSize> bytes) {
  assert(header.source.family() == header.destination.family());
  std::ranges::fill(bytes, std::byte{0});
  set_bits(bytes, kIpVersion, header.source.is_v4() ? 4 : 6);
  store(bytes, kSourcePort, Be16(header.source_port));
  put_address(bytes, kSource, header.source);
  put_address(bytes, kDestination, header.destination);
}

}  // namespace ipoverbs::verbs::soft
