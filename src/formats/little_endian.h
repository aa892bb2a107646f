// Integers of file headers, read byte by byte: no alignment, no dependence on this machine's byte
// order.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <span>

namespace ait::formats {

// What Tensor::set_byte_swapped wants to hear of formats that are always little-endian.
inline constexpr bool kLittleEndianIsForeign = std::endian::native == std::endian::big;

// The caller has checked that `sizeof(T)` bytes lie at `offset_bytes`.
template <std::unsigned_integral T>
T read_le(std::span<const std::byte> bytes, size_t offset_bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value |
                           static_cast<T>(std::to_integer<T>(bytes[offset_bytes + i]) << (8 * i)));
  return value;
}

}  // namespace ait::formats
