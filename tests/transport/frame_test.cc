#include "transport/frame.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/packets.h"

namespace ipoverbs::transport {
namespace {

using support::Bytes;

// A message as a worker lays it out: into memory full of 0xa5.
Bytes message_of(const std::vector<std::size_t>& lengths) {
  Bytes message;
  for (const std::size_t length : lengths) {
    Bytes frame(frame_size(length), std::byte{0xa5});
    for (std::size_t at = kTunOffset; at < kFrameHeader + length; ++at) {
      frame[at] = std::byte{0x22};
    }
    finish_packet_frame(frame, length);
    message.insert(message.end(), frame.begin(), frame.end());
  }
  return message;
}

std::vector<std::size_t> lengths_in(Bytes message, FrameReader::Result end) {
  std::vector<std::size_t> lengths;
  FrameReader reader(message);
  Frame frame;
  FrameReader::Result result = reader.next(frame);
  for (; result == FrameReader::Result::Frame; result = reader.next(frame)) {
    lengths.push_back(frame.packet().size());
  }
  EXPECT_EQ(result, end);
  return lengths;
}

TEST(Frame, IsWrittenByteForByte) {
  Bytes frame(24, std::byte{0xa5});
  store(std::span(frame), kTunOffset,
        tun::VirtioNetHeader{1, 5, Le16(0x0102), Le16(3), Le16(4), Le16(5)});
  store(std::span(frame), kFrameHeader, Be32(0x60616263));
  finish_packet_frame(frame, 4);
  set_credits(frame, 0x0708);
  const std::array<unsigned, 24> wanted{0, 4, 7, 8, 0,    0,    1,    5,    2, 1, 3, 0,
                                        4, 0, 5, 0, 0x60, 0x61, 0x62, 0x63, 0, 0, 0, 0};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(frame[i]), wanted[i]) << i;
  }
}

TEST(Frame, WithoutAChecksumToCompleteDoesNotLookLikeRpcOverRdma) {
  Bytes frame(24, std::byte{0xa5});
  store(std::span(frame), kTunOffset, tun::VirtioNetHeader{});
  finish_packet_frame(frame, 4);
  EXPECT_EQ(load<Be32>(std::span<const std::byte>(frame).subspan(12)).value(), 0xffffU);
}

TEST(Frame, ControlIsWrittenByteForByte) {
  Bytes frame(16, std::byte{0xa5});
  write_control_frame(frame, 300);
  const std::array<unsigned, 16> wanted{0, 0, 1, 44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(frame[i]), wanted[i]) << i;
  }
}

TEST(Frame, CapabilitiesAreWrittenByteForByte) {
  Bytes frame(16, std::byte{0xa5});
  write_capabilities_frame(frame, 0x01020304);
  const std::array<unsigned char, 16> expected{0, 0, 0, 0, 1, 2, 0,    0,
                                               1, 2, 3, 4, 0, 0, 0xff, 0xff};
  EXPECT_TRUE(std::ranges::equal(frame, std::as_bytes(std::span(expected))));
  FrameReader reader(frame);
  Frame read;
  ASSERT_EQ(reader.next(read), FrameReader::Result::Frame);
  EXPECT_EQ(read.type, FrameType::Control);
  EXPECT_EQ(read.flags, kCapabilities);
  EXPECT_EQ(read.capabilities(), 0x01020304U);
}

TEST(FrameReader, ReadsEveryFrameOfAMessage) {
  for (const auto& lengths : std::vector<std::vector<std::size_t>>{
           {}, {1}, {8}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {20, 65535}, {1500, 40, 40}}) {
    EXPECT_EQ(lengths_in(message_of(lengths), FrameReader::Result::End), lengths);
  }
}

TEST(FrameReader, TakesALastFrameWithoutItsPadding) {
  Bytes message = message_of({20, 21});
  message.resize(message.size() - 3);
  EXPECT_EQ(lengths_in(message, FrameReader::Result::End), (std::vector<std::size_t>{20, 21}));
}

TEST(FrameReader, RefusesEveryCutThatLosesAByteOfAPacket) {
  const Bytes whole = message_of({40, 21});
  const std::size_t first = frame_size(40);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t complete = size < kFrameHeader + 40           ? 0
                                 : size < first + kFrameHeader + 21 ? 1
                                                                    : 2;
    const bool at_a_bound = complete == 2 || (complete == 1 && size <= first);
    EXPECT_EQ(
        lengths_in(cut, at_a_bound ? FrameReader::Result::End : FrameReader::Result::Malformed)
            .size(),
        complete)
        << size;
  }
}

TEST(FrameReader, RefusesAnUnknownTypeAndATypeThatContradictsItsLength) {
  for (const auto& [type, length] :
       std::vector<std::pair<std::uint8_t, std::uint16_t>>{{2, 1}, {255, 0}, {0, 0}, {1, 1}}) {
    Bytes message = message_of({8});
    store(std::span(message), 4, type);
    store(std::span(message), 0, Be16(length));
    EXPECT_TRUE(lengths_in(message, FrameReader::Result::Malformed).empty());
  }
}

TEST(FrameReader, HandsOutCreditsOfPacketsAndControls) {
  Bytes message = message_of({4});
  set_credits(message, 7);
  Bytes control(16);
  write_control_frame(control, 9);
  message.insert(message.end(), control.begin(), control.end());
  FrameReader reader(message);
  Frame frame;
  ASSERT_EQ(reader.next(frame), FrameReader::Result::Frame);
  EXPECT_EQ(frame.credits, 7);
  EXPECT_EQ(frame.type, FrameType::Packet);
  ASSERT_EQ(reader.next(frame), FrameReader::Result::Frame);
  EXPECT_EQ(frame.credits, 9);
  EXPECT_EQ(frame.type, FrameType::Control);
  EXPECT_EQ(reader.next(frame), FrameReader::Result::End);
}

}  // namespace
}  // namespace ipoverbs::transport
