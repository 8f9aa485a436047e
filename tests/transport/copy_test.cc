#include "transport/copy.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/byte_order.h"
#include "csum/csum.h"
#include "transport/frame.h"

namespace ipoverbs::transport {
namespace {

using Bytes = std::vector<std::byte>;

// A frame with an IPv4 UDP packet, `payload` bytes long, whose checksum is partial.
Bytes partial_frame(std::size_t payload) {
  Bytes frame(kFrameHeader + 28 + payload);
  const std::span<std::byte> packet = std::span(frame).subspan(kFrameHeader);
  store(packet, 0, std::uint8_t{0x45});
  store(packet, 2, Be16(static_cast<std::uint16_t>(packet.size())));
  store(packet, 8, std::uint8_t{64});
  store(packet, 9, std::uint8_t{17});
  store(packet, 12, Be32(0x0a4d0001));
  store(packet, 16, Be32(0x0a4d0002));
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += load<Be16>(packet, i).value();
  store(packet, 10, Be16(static_cast<std::uint16_t>(~(sum % 0xffff))));
  store(packet, 20, Be16(40000));
  store(packet, 22, Be16(9));
  store(packet, 24, Be16(static_cast<std::uint16_t>(8 + payload)));
  for (std::size_t i = 28; i < packet.size(); ++i) packet[i] = static_cast<std::byte>(i * 37);
  return frame;
}

constexpr csum::ChecksumPlace kUdp{.start = 20, .offset = 6};

TEST(CopyFrame, OnePassDoesWhatTwoDo) {
  for (const std::size_t payload : {0UZ, 1UZ, 2UZ, 63UZ, 1472UZ, 9001UZ, 65480UZ}) {
    const Bytes frame = partial_frame(payload);
    Bytes fused(frame.size());
    Bytes separate(frame.size());
    ASSERT_TRUE(copy_frame(fused, frame, kUdp, Summing::Fused));
    ASSERT_TRUE(copy_frame(separate, frame, kUdp, Summing::Separate));
    EXPECT_EQ(fused, separate) << payload;
    const auto packet = std::span<const std::byte>(fused).subspan(kFrameHeader);
    EXPECT_TRUE(csum::is_good(csum::verify(packet, csum::locate(packet)))) << payload;
  }
}

TEST(CopyFrame, WithoutAChecksumItIsACopy) {
  const Bytes frame = partial_frame(100);
  Bytes copy(frame.size());
  EXPECT_TRUE(copy_frame(copy, frame, std::nullopt, Summing::Fused));
  EXPECT_EQ(copy, frame);
}

TEST(CopyFrame, APlaceOutsideThePacketFails) {
  const Bytes frame = partial_frame(100);
  Bytes copy(frame.size());
  for (const Summing summing : {Summing::Fused, Summing::Separate}) {
    EXPECT_FALSE(
        copy_frame(copy, frame, csum::ChecksumPlace{.start = 20, .offset = 1000}, summing));
    EXPECT_FALSE(copy_frame(copy, frame, csum::ChecksumPlace{.start = 4000, .offset = 6}, summing));
  }
}

}  // namespace
}  // namespace ipoverbs::transport
