// Arbitrary bytes into the packet parser: what it accepts lies inside the datagram, and emitted
// again it parses to the same.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "verbs/soft/icrc.h"
#include "verbs/soft/roce.h"

using namespace ipoverbs;
using namespace ipoverbs::verbs::soft;

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> input = [&] {
    std::vector<std::byte> copy(size);
    std::ranges::transform(std::span(data, size), copy.begin(),
                           [](std::uint8_t b) { return std::byte{b}; });
    return copy;
  }();
  const auto packet = parse(input);
  if (!packet) {
    require(to_string(packet.error()) != nullptr);
    return 0;
  }
  require(packet->payload.size() + layout_of(packet->bth.opcode).size() + kIcrcSize <= size);
  const IcrcFlow flow(*IpAddress::parse("192.0.2.1"), 0xc000, *IpAddress::parse("192.0.2.2"),
                      kRocePort);
  static_cast<void>(icrc_matches(flow, input, 0));
  std::vector<std::byte> out(kMaxDatagram);
  out.resize(emit(out, *packet, flow, 9));
  const auto again = parse(out);
  require(again.has_value());
  require(std::ranges::equal(again->payload, packet->payload));
  require(again->bth.psn() == packet->bth.psn());
  require(icrc_matches(flow, out, 0) == std::optional<std::uint16_t>(9));
  return 0;
}
