// Arbitrary bytes as a received message: what is handed out lies within it, in order, and adds up.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "transport/frame.h"
#include "transport/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ipoverbs::transport;
  std::vector<std::byte> message(size);
  for (std::size_t i = 0; i < size; ++i) message[i] = std::byte{data[i]};
  FrameReader reader(message);
  Frame frame;
  const std::byte* last = message.data();
  while (reader.next(frame) == FrameReader::Result::Frame) {
    const std::span<std::byte> packet = frame.packet();
    if (packet.data() < last + kFrameHeader) std::abort();
    if (packet.data() + packet.size() > message.data() + size) std::abort();
    last = packet.data() + packet.size();
    if (!packet.empty() && read_addresses(packet)) static_cast<void>(flow_hash(packet));
  }
  return 0;
}
