#include "tests/support/pcap.h"

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/byte_order.h"

namespace ipoverbs::test {

namespace {

struct FileHeader {
  Le32 magic;
  Le16 major;
  Le16 minor;
  std::array<std::byte, 8> zone_and_accuracy;
  Le32 snapshot_length;
  Le32 link_type;
};
static_assert(sizeof(FileHeader) == 24);
constexpr std::uint32_t kMagicMicroseconds = 0xa1b2c3d4;
constexpr std::uint32_t kLinkEthernet = 1;

struct RecordHeader {
  Le32 seconds;
  Le32 microseconds;
  Le32 captured;
  Le32 length;
};
static_assert(sizeof(RecordHeader) == 16);

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kUdp = 8;
constexpr std::byte kProtocolUdp{17};

std::optional<CapturedDatagram> datagram_after(std::span<const std::byte> ip, std::size_t header,
                                               std::size_t addresses, std::size_t address) {
  if (ip.size() < header + kUdp) {
    return std::nullopt;
  }
  const std::span<const std::byte> udp = ip.subspan(header);
  const std::size_t length = load<Be16>(udp, 4).value();
  if (length < kUdp || udp.size() < length) {
    return std::nullopt;
  }
  return CapturedDatagram{IpAddress::from_bytes(ip.subspan(addresses, address)),
                          IpAddress::from_bytes(ip.subspan(addresses + address, address)),
                          load<Be16>(udp, 0).value(),
                          load<Be16>(udp, 2).value(),
                          0,
                          udp.first(length).subspan(kUdp)};
}

}  // namespace

std::vector<CapturedFrame> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error(path + ": cannot be read");
  }
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  std::span<const std::byte> rest = std::as_bytes(std::span(text));
  const auto take = [&](std::size_t size) {
    if (rest.size() < size) {
      throw std::runtime_error(path + ": ends early");
    }
    const auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  };
  const auto header = load<FileHeader>(take(sizeof(FileHeader)));
  if (header.magic.value() != kMagicMicroseconds || header.link_type.value() != kLinkEthernet) {
    throw std::runtime_error(path + ": not a little-endian pcap file of Ethernet frames");
  }
  std::vector<CapturedFrame> frames;
  while (!rest.empty()) {
    const auto record = load<RecordHeader>(take(sizeof(RecordHeader)));
    if (record.captured != record.length) {
      throw std::runtime_error(path + ": holds a frame that was cut");
    }
    const auto bytes = take(record.captured.value());
    frames.push_back({std::chrono::seconds(record.seconds.value()) +
                          std::chrono::microseconds(record.microseconds.value()),
                      {bytes.begin(), bytes.end()}});
  }
  return frames;
}

std::optional<CapturedDatagram> udp_of(const CapturedFrame& frame) {
  const std::span<const std::byte> bytes(frame.bytes);
  if (bytes.size() < kEthernet + 20) {
    return std::nullopt;
  }
  const auto ether_type = load<Be16>(bytes, 12).value();
  const std::span<const std::byte> ip = bytes.subspan(kEthernet);
  if (ether_type == 0x0800 && ip[0] == std::byte{0x45} && ip[9] == kProtocolUdp) {
    std::optional<CapturedDatagram> datagram = datagram_after(ip, 20, 12, 4);
    if (datagram) {
      datagram->ip_id = load<Be16>(ip, 4).value();
    }
    return datagram;
  }
  if (ether_type == 0x86dd && ip[6] == kProtocolUdp) {
    return datagram_after(ip, 40, 8, 16);
  }
  return std::nullopt;
}

}  // namespace ipoverbs::test
