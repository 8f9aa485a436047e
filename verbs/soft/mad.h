// The management datagram (MAD) as the connection manager uses it: 256 bytes, the first 24 of them
// the common header (InfiniBand Architecture vol. 1, 13.4.3; kernel include/rdma/ib_mad.h).
//
//   0 base version | 1 class | 2 class version | 3 method | 4 status (16) | 6 class specific (16)
//   8 transaction ID (64) | 16 attribute (16) | 18 reserved (16) | 20 attribute modifier (32)
//   24 the message
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/strong.h"
#include "verbs/soft/bit_field.h"

namespace ipoverbs::verbs::soft {

inline constexpr std::size_t kMadSize = 256;
inline constexpr std::size_t kMadHeaderSize = 24;

inline constexpr std::uint8_t kMadBaseVersion = 1;
inline constexpr std::uint8_t kMadClassCm = 0x07;
inline constexpr std::uint8_t kMadClassVersionCm = 2;
inline constexpr std::uint8_t kMadMethodSend = 0x03;

// Chosen by who starts an exchange, echoed by who answers; resent messages keep it. The kernel puts
// the number of its MAD agent into the upper half (drivers/infiniband/core/mad.c).
using TransactionId = Strong<struct TransactionIdTag, std::uint64_t>;

namespace mad {
inline constexpr BitField kBaseVersion{0, 0, 8};
inline constexpr BitField kManagementClass{1, 0, 8};
inline constexpr BitField kClassVersion{2, 0, 8};
inline constexpr BitField kMethod{3, 0, 8};
inline constexpr BitField kStatus{4, 0, 16};
inline constexpr BitField kTransactionId{8, 0, 64};
inline constexpr BitField kAttributeId{16, 0, 16};
inline constexpr BitField kAttributeModifier{20, 0, 32};
}  // namespace mad

}  // namespace ipoverbs::verbs::soft
