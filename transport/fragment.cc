#include "transport/fragment.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "core/byte_order.h"
#include "csum/packet.h"
#include "transport/ip_header.h"

namespace ipoverbs::transport {

namespace {

constexpr std::size_t kTotalLength = 2;
constexpr std::size_t kFragmentField = 6;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreFragments = 0x2000;
constexpr std::uint16_t kOffset = 0x1fff;  // in units of 8 bytes
constexpr std::size_t kHeaderChecksum = 10;
// Options, RFC 791, section 3.1.
constexpr std::byte kEndOfOptions{0};
constexpr std::byte kNoOperation{1};
constexpr std::byte kCopied{0x80};

}  // namespace

bool may_fragment(std::span<const std::byte> packet) noexcept {
  if (ip_version(packet) != 4) return false;
  const std::uint16_t field = load<Be16>(packet, kFragmentField).value();
  constexpr std::size_t kLongest = 65535;  // of a datagram
  return (field & kDontFragment) == 0 &&
         std::size_t{8} * (field & kOffset) + packet.size() <= kLongest;
}

Fragments::Fragments(std::span<const std::byte> packet, IpMtu mtu) noexcept
    : first_header_(packet.first(ipv4_header_length(packet))),
      payload_(packet.subspan(ipv4_header_length(packet))),
      mtu_(mtu.value()),
      later_header_size_(kIpv4Header) {
  assert(mtu_ >= kMaxHeader + 8 && packet.size() > mtu_);
  std::ranges::copy(packet.first(kIpv4Header), later_header_.begin());
  copy_options(first_header_.subspan(kIpv4Header));
}

void Fragments::copy_options(std::span<const std::byte> options) noexcept {
  while (!options.empty() && options[0] != kEndOfOptions) {
    if (options[0] == kNoOperation) {
      options = options.subspan(1);
      continue;
    }
    // Where one option's length is wrong there is no next one to be found.
    const std::size_t length = options.size() < 2 ? 0 : std::to_integer<std::size_t>(options[1]);
    if (length < 2 || length > options.size()) break;
    if ((options[0] & kCopied) != std::byte{0}) {
      std::ranges::copy(options.first(length),
                        std::span(later_header_).subspan(later_header_size_).begin());
      later_header_size_ += length;
    }
    options = options.subspan(length);
  }
  // Padded with kEndOfOptions.
  later_header_size_ = (later_header_size_ + 3) / 4 * 4;
  later_header_[0] = static_cast<std::byte>(0x40 | later_header_size_ / 4);
}

std::span<const std::byte> Fragments::header() const noexcept {
  return at_ == 0 ? first_header_ : std::span(later_header_).first(later_header_size_);
}

std::size_t Fragments::left() const noexcept {
  std::size_t bytes = payload_.size() - at_;
  std::size_t count = 0;
  for (std::size_t size = header().size(); bytes > 0; size = later_header_size_) {
    bytes -= bytes + size <= mtu_ ? bytes : room(size);
    ++count;
  }
  return count;
}

std::size_t Fragments::next(std::span<std::byte> out) noexcept {
  const std::span<const std::byte> rest = payload_.subspan(at_);
  if (rest.empty()) return 0;
  const std::span<const std::byte> ip = header();
  const bool last = ip.size() + rest.size() <= mtu_;
  const std::size_t bytes = last ? rest.size() : room(ip.size());
  const std::span<std::byte> fragment = out.first(ip.size() + bytes);
  std::ranges::copy(ip, fragment.begin());
  std::ranges::copy(rest.first(bytes), fragment.subspan(ip.size()).begin());
  // The packet may be a fragment itself. The offset counts in units of 8 bytes.
  const auto field = load<Be16>(first_header_, kFragmentField).value() + at_ / 8;
  store(fragment, kFragmentField,
        Be16(static_cast<std::uint16_t>(last ? field : field | kMoreFragments)));
  store(fragment, kTotalLength, Be16(static_cast<std::uint16_t>(fragment.size())));
  store(fragment, kHeaderChecksum, csum::ipv4_header_checksum(fragment.first(ip.size())));
  at_ += bytes;
  return fragment.size();
}

}  // namespace ipoverbs::transport
