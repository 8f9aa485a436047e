#include "verbs/soft/bit_field.h"

#include <array>
#include <random>

#include <gtest/gtest.h>

namespace ipoverbs::verbs::soft {
namespace {

// One bit at a time, from the definition.
std::uint64_t slow_get(std::span<const std::byte> bytes, BitField field) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < field.width; ++i) {
    const std::size_t at = field.byte * 8 + field.bit + i;
    const auto byte = std::to_integer<unsigned>(bytes[at / 8]);
    value = value << 1U | (byte >> (7 - at % 8) & 1U);
  }
  return value;
}

TEST(BitField, ReadsAndWritesEveryPlaceAndWidth) {
  std::mt19937_64 random(1);  // fixed seed
  for (unsigned bit = 0; bit < 8; ++bit) {
    for (unsigned width = 1; width + bit <= 64; ++width) {
      const BitField field{2, bit, width};
      std::array<std::byte, 12> bytes{};
      for (auto& b : bytes) b = static_cast<std::byte>(random());
      const auto before = bytes;
      EXPECT_EQ(get_bits(bytes, field), slow_get(bytes, field));

      const std::uint64_t value = random() & widest(field);
      set_bits(bytes, field, value);
      EXPECT_EQ(slow_get(bytes, field), value) << bit << "+" << width;
      for (unsigned other = 0; other < bytes.size() * 8; ++other) {
        const BitField one{other / 8, other % 8, 1};
        const unsigned first = 16 + bit;
        if (other < first || other >= first + width) {
          EXPECT_EQ(get_bits(bytes, one), get_bits(before, one)) << "bit " << other << " changed";
        }
      }
    }
  }
}

TEST(BitField, CountsFromTheMostSignificantBit) {
  const std::array bytes{std::byte{0b1010'0000}, std::byte{0b0000'0001}};
  EXPECT_EQ(get_bits(bytes, {0, 0, 3}), 0b101U);
  EXPECT_EQ(get_bits(bytes, {0, 2, 14}), 0b10'0000'0000'0001U);
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
