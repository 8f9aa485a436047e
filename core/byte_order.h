// Integers with a byte order in their type.
//
// Be16, Be32, Be64 (network order) and Le16, Le32 are arrays of bytes: they have alignment 1, may
// be members of structures that lie over packets, and convert to and from host integers only by
// name. They are the one place of the project where bytes are swapped.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace ipoverbs {

namespace detail {
template <std::unsigned_integral T>
constexpr T byte_swap(T v) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<T>(__builtin_bswap16(v));
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bswap32(v);
  } else {
    static_assert(sizeof(T) == 8);
    return __builtin_bswap64(v);
  }
}
}  // namespace detail

// An unsigned integer stored in byte order `Order`, unaligned.
template <std::unsigned_integral T, std::endian Order>
class Ordered {
 public:
  using Value = T;
  constexpr Ordered() = default;
  constexpr explicit Ordered(T host) : bytes_(std::bit_cast<Bytes>(swap(host))) {}
  // The value in the host's byte order.
  [[nodiscard]] constexpr T value() const { return swap(std::bit_cast<T>(bytes_)); }
  friend constexpr bool operator==(const Ordered&, const Ordered&) = default;

 private:
  using Bytes = std::array<std::byte, sizeof(T)>;
  static constexpr T swap(T v) { return Order == std::endian::native ? v : detail::byte_swap(v); }
  Bytes bytes_{};
};

using Be16 = Ordered<std::uint16_t, std::endian::big>;
using Be32 = Ordered<std::uint32_t, std::endian::big>;
using Be64 = Ordered<std::uint64_t, std::endian::big>;
using Le16 = Ordered<std::uint16_t, std::endian::little>;
using Le32 = Ordered<std::uint32_t, std::endian::little>;

static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1);

// Copies a trivially copyable T out of `bytes` at `offset`. The caller has checked that it lies
// within: offset + sizeof(T) <= bytes.size().
template <class T>
[[nodiscard]] T load(std::span<const std::byte> bytes, std::size_t offset = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::array<std::byte, sizeof(T)> copy;
  std::memcpy(copy.data(), bytes.subspan(offset, sizeof(T)).data(), sizeof(T));
  return std::bit_cast<T>(copy);
}

// Copies `value` into `bytes` at `offset`; same bound as load().
template <class T>
void store(std::span<std::byte> bytes, std::size_t offset, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.subspan(offset, sizeof(T)).data(), &value, sizeof(T));
}

}  // namespace ipoverbs
