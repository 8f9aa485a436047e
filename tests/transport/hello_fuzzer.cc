// Arbitrary private data: what parses is written again byte for byte, but for the reserved bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "transport/hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ipoverbs::transport;
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte{data[i]};
  constexpr std::ptrdiff_t kReserved = 34;
  if (const auto hello = parse_hello(bytes); hello) {
    const auto again = emit(*hello);
    if (!std::equal(again.begin(), again.begin() + kReserved, bytes.begin())) std::abort();
  }
  if (describe_reject(bytes).empty()) std::abort();
  return 0;
}
