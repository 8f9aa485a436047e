// Packets of two Debian 12 kernels (6.1) with rdma_rxe, from the IP header to the ICRC.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace ipoverbs::verbs::soft::golden {

inline constexpr std::string_view kAckV4 =
    "450000301814400040110de10a6300010a630002f39d12b7001c00001100ffff0000001100ff1fa41f000001"
    "c3938977";
inline constexpr std::string_view kSendOnlyV4 =
    "4500003c3e4c40004011e79c0a6300020a630001f39d12b7002800000400ffff0000001180ff1fa4000055a9"
    "6b0c93700000052b000000403cadaa2b";
inline constexpr std::string_view kAckV6 =
    "60000000001c1140fd990000000000000000000000000001fd990000000000000000000000000002f90312b7"
    "001c00001100ffff0000001100f802261f0000015e68a8e1";

inline constexpr std::size_t kHeadersV4 = 28;  // IPv4 and UDP
inline constexpr std::size_t kHeadersV6 = 48;

[[nodiscard]] inline std::vector<std::byte> bytes(std::string_view hex) {
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(digit(hex[i]) << 4U | digit(hex[i + 1])));
  }
  return out;
}

}  // namespace ipoverbs::verbs::soft::golden
