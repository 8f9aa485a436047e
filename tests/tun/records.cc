#include "tests/tun/records.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/byte_order.h"

namespace ipoverbs::tun {

namespace {

unsigned digit(char c) {
  const std::string_view digits = "0123456789abcdef";
  const std::size_t value = digits.find(c);
  assert(value != std::string_view::npos);
  return static_cast<unsigned>(value);
}

// Appends `count` bytes, the i-th being `step` * i + `first`.
void append_payload(std::vector<std::byte>& packet, std::size_t count, std::size_t step,
                    std::size_t first) {
  for (std::size_t i = 0; i < count; ++i)
    packet.push_back(static_cast<std::byte>(step * i + first));
}

}  // namespace

std::vector<std::byte> Record::bytes() const {
  std::vector<std::byte> all(sizeof header + packet.size());
  store(std::span(all), 0, header);
  std::ranges::copy(packet, all.begin() + sizeof header);
  return all;
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) << 4U | digit(hex[i + 1])));
  }
  return bytes;
}

Record record_from_hex(std::string_view hex) {
  const std::vector<std::byte> all = from_hex(hex);
  return {load<VirtioNetHeader>(all), {all.begin() + sizeof(VirtioNetHeader), all.end()}};
}

Record tcp4_super_packet() {
  Record record = record_from_hex(
      "01012800e80314001000450009ecffff000040065c700a4d00010a4d00029c400009fffffc00000000075099"
      "03e81e7b0000");
  append_payload(record.packet, 2500, 7, 3);
  return record;
}

Record tcp6_super_packet() {
  Record record = record_from_hex(
      "01044400640030001000602abcde00b23c40fd770000000000000000000000000001fd77000000000000000000"
      "00000000020600010400000000"
      "9c4000090000006400000007501803e8fba20000");
  append_payload(record.packet, 150, 3, 2);
  return record;
}

Record udp4_super_packet() {
  // The sum over pseudo-header and length: 0a4d + 0001 + 0a4d + 0002 + 0011 + 0102.
  Record record = record_from_hex(
      "01051c0064001400060045000116000140004011253a0a4d00010a4d00029c400009010215b0");
  append_payload(record.packet, 250, 7, 3);
  return record;
}

Record udp4_partial() {
  return record_from_hex(
      "010000000000140006004500001e00014000401126320a4d00010a4d00029c400009000a14b84ef4");
}

std::vector<std::byte> ipv6_packet(std::uint8_t next, std::span<const std::byte> payload) {
  std::vector<std::byte> packet =
      from_hex("6000000000000040fd770000000000000000000000000001fd770000000000000000000000000002");
  packet.insert(packet.end(), payload.begin(), payload.end());
  store(std::span(packet), 4, Be16(static_cast<std::uint16_t>(payload.size())));
  packet[6] = std::byte{next};
  return packet;
}

}  // namespace ipoverbs::tun
