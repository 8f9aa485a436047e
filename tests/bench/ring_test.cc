#include "bench/bounds/ring.h"

#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace ipoverbs::bounds {
namespace {

// Four bytes that name the packet, and as many more as the number says.
std::size_t fill(std::span<std::byte> slot, std::uint32_t number) {
  std::memcpy(slot.data(), &number, sizeof number);
  return sizeof number + number % 1000;
}

std::uint32_t number_of(std::span<const std::byte> packet) {
  std::uint32_t number = 0;
  std::memcpy(&number, packet.data(), sizeof number);
  return number;
}

TEST(Ring, IsFullAfterItsSlotsAndTakesOneMoreForEachGivenBack) {
  const auto ring = std::make_unique<Ring>();
  Producer producer(*ring);
  Consumer consumer(*ring);
  EXPECT_TRUE(consumer.empty());
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_FALSE(producer.full());
    producer.publish(fill(producer.slot(), i));
  }
  EXPECT_TRUE(producer.full());
  ASSERT_FALSE(consumer.empty());
  EXPECT_EQ(number_of(consumer.front()), 0U);
  consumer.release();
  EXPECT_FALSE(producer.full());
  producer.publish(fill(producer.slot(), kSlots));
  EXPECT_TRUE(producer.full());
}

TEST(Ring, KeepsOrderAndSizeBetweenTwoThreads) {
  constexpr std::uint32_t kPackets = 20000;
  const auto ring = std::make_unique<Ring>();
  std::jthread sender([&ring] {
    Producer producer(*ring);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      while (producer.full()) std::this_thread::yield();
      producer.publish(fill(producer.slot(), i));
    }
  });
  Consumer consumer(*ring);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    while (consumer.empty()) std::this_thread::yield();
    ASSERT_EQ(number_of(consumer.front()), i);
    ASSERT_EQ(consumer.front().size(), sizeof i + i % 1000);
    consumer.release();
  }
  EXPECT_TRUE(consumer.empty());
}

TEST(Ring, ASlotTakesTheLargestRecordAndNoTwoAreAlikeInAPage) {
  const auto ring = std::make_unique<Ring>();
  std::set<std::uintptr_t> offsets;
  for (const auto& slot : ring->slots) {
    EXPECT_GE(slot.size(), tun::kMaxRecord);
    offsets.insert(reinterpret_cast<std::uintptr_t>(slot.data()) % 4096);
  }
  EXPECT_EQ(offsets.size(), kSlots);
}

}  // namespace
}  // namespace ipoverbs::bounds
