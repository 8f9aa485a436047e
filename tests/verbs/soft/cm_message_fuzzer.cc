// Any 256 bytes into the connection manager's parser: what it accepts is emitted again as it was
// but for the reserved bits, and parses to the same message.

#include <cstdlib>

#include "verbs/soft/cm_message.h"
#include "verbs/soft/cma_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ipoverbs::verbs::soft;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto message = parse_cm(bytes);
  if (!message) return 0;
  const Mad again = emit_cm(*message);
  const Mad described = described_bits(message->body);
  for (std::size_t i = 0; i < kMadSize; ++i) {
    if ((bytes[i] & described[i]) != again[i]) std::abort();
  }
  if (parse_cm(again) != *message) std::abort();
  if (const auto* req = std::get_if<ConnectRequestMessage>(&message->body)) {
    if (const auto header =
            parse_cma_header(std::span(req->private_data).first<kCmaHeaderSize>())) {
      std::array<std::byte, kCmaHeaderSize> out{};
      emit_cma_header(*header, out);
      if (parse_cma_header(out) != *header) std::abort();
    }
  }
  return 0;
}
