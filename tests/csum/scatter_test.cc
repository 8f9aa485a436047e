// Lists of pieces: cut in every way that a few bytes can be, and at random.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "csum/csum.h"
#include "tests/csum/memory.h"
#include "tests/csum/reference.h"

namespace ipoverbs::csum {
namespace {

// Cuts `whole` by a number in base 3, a digit for each place between two bytes and for both ends:
// 0 leaves it whole, 1 cuts, 2 cuts twice, which leaves an empty piece. (At the ends a cut alone
// makes an empty piece.)
template <class Byte>
std::vector<std::span<Byte>> cut(std::span<Byte> whole, std::size_t how) {
  std::vector<std::span<Byte>> pieces;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= whole.size(); ++at) {
    for (std::size_t cuts = how % 3; cuts > 0; --cuts) {
      pieces.push_back(whole.subspan(begin, at - begin));
      begin = at;
    }
    how /= 3;
  }
  pieces.push_back(whole.subspan(begin));
  return pieces;
}

// 3^n
std::size_t ways(std::size_t places) {
  std::size_t all = 1;
  for (std::size_t i = 0; i < places; ++i) all *= 3;
  return all;
}

std::size_t bytes_in(const std::vector<Piece>& pieces) {
  std::size_t n = 0;
  for (const Piece piece : pieces) n += piece.size();
  return n;
}

class Scatter : public testing::Test {
 protected:
  // Sums and copies `pieces`, whose bytes are `whole`, to one piece and to pieces of their own.
  void expect_right(std::span<const std::byte> whole, const std::vector<Piece>& pieces,
                    std::size_t how_to, std::uint16_t initial) {
    ASSERT_EQ(bytes_in(pieces), whole.size());
    const Be16 right = reference::sum(whole, initial);
    const Partial start(Be16{initial});
    ASSERT_EQ(fold(sum(std::span(pieces), start)), right);

    Bytes gathered(whole.size(), std::byte{0x5a});
    ASSERT_EQ(fold(copy(std::span(gathered), std::span(pieces), start)), right);
    ASSERT_TRUE(std::ranges::equal(gathered, whole));

    Bytes scattered(whole.size(), std::byte{0x5a});
    const std::vector<MutablePiece> to = cut(std::span(scattered), how_to);
    ASSERT_EQ(fold(copy(std::span(to), std::span(pieces), start)), right);
    ASSERT_TRUE(std::ranges::equal(scattered, whole));

    std::ranges::fill(scattered, std::byte{0x5a});
    ASSERT_EQ(fold(copy(std::span(to), whole, start)), right);
    ASSERT_TRUE(std::ranges::equal(scattered, whole));
  }
  Random random_{6};
};

// Every way to cut 0 to 12 bytes, each cut with and without an empty piece in it, the ends
// included up to 9 bytes; the destination is cut in a random way.
TEST_F(Scatter, SumsAndCopiesEveryCut) {
  const Bytes bytes = random_bytes(12, 7);
  for (std::size_t n = 0; n <= 12; ++n) {
    const auto whole = std::span(bytes).first(n);
    const std::size_t places = n <= 9 ? n + 1 : n - 1;
    for (std::size_t i = 0; i < ways(places); ++i) {
      // Three times as much moves the cuts one place on, past the first end.
      const std::size_t how = n <= 9 ? i : 3 * i;
      SCOPED_TRACE(testing::Message() << n << " bytes, cut " << how);
      expect_right(whole, cut(whole, how), random_() % ways(n + 1),
                   static_cast<std::uint16_t>(random_()));
      if (HasFatalFailure()) return;
    }
  }
}

// Vector V6: the sum if every piece began at an even offset would be 0x53bd for this cut.
TEST_F(Scatter, KnowsOddOffsets) {
  const auto bytes =
      std::to_array<std::byte>({std::byte{0xaa}, std::byte{0xbb}, std::byte{0xcc}, std::byte{0xdd},
                                std::byte{0xee}, std::byte{0xff}, std::byte{0x11}});
  const auto whole = std::span<const std::byte>(bytes);
  for (std::size_t how = 0; how < ways(8); ++how) {
    const std::vector<Piece> pieces = cut(whole, how);
    ASSERT_EQ(fold(sum(std::span(pieces))), Be16(0x7799)) << how;
    ASSERT_EQ(checksum(sum(std::span(pieces))), Be16(0x8866)) << how;
  }
  std::size_t wrong = 0;
  for (std::size_t first = 0; first <= 7; ++first) {
    for (std::size_t second = first; second <= 7; ++second) {
      const Partial each_even = sum(whole.first(first)) +
                                sum(whole.subspan(first, second - first)) +
                                sum(whole.subspan(second));
      if (fold(each_even) == Be16(0x53bd)) ++wrong;
    }
  }
  EXPECT_GT(wrong, 0U) << "the tell-tale of the mistake that this test is for";
}

// Pieces long enough for the kernels, of random lengths, odd ones as often as even ones.
TEST_F(Scatter, SumsAndCopiesLongPieces) {
  const Bytes bytes = random_bytes(65535, 8);
  for (int turn = 0; turn < 200; ++turn) {
    const std::size_t n = random_() % (bytes.size() + 1);
    std::span<const std::byte> rest = std::span(bytes).first(n);
    std::vector<Piece> pieces;
    while (!rest.empty()) {
      const std::size_t length = std::min<std::size_t>(rest.size(), random_() % 3000);
      pieces.push_back(rest.first(length));
      rest = rest.subspan(length);
    }
    expect_right(std::span(bytes).first(n), pieces, random_(),
                 static_cast<std::uint16_t>(random_()));
    if (HasFatalFailure()) return;
  }
}

TEST_F(Scatter, TakesNoPieceForNothing) {
  EXPECT_EQ(fold(sum(std::span<const Piece>(), Partial(Be16{7}))), Be16(7));
  EXPECT_EQ(fold(copy(std::span<std::byte>(), std::span<const Piece>())), Be16(0));
}

}  // namespace
}  // namespace ipoverbs::csum
