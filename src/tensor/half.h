// Conversions between float and the narrow floating-point types, one value at a time. Widening is
// exact; narrowing rounds to nearest, ties to even, as IEEE 754 and torch do. Scalar on purpose:
// the vector kernels of metrics/ widen fp16 and bf16 for themselves and are tested against these.
#pragma once

#include <bit>
#include <cstdint>

namespace ait {

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)  // Inf and NaN keep their payload
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // The shifted pattern is the value divided by 2^112, subnormals included; multiplying is exact.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

uint16_t float_to_fp16(float value);
uint16_t float_to_bf16(float value);

// The five 8-bit types. A value that is too large becomes NaN in e4m3fn, which has no Inf, and Inf
// in e5m2.
float fp8_e4m3fn_to_float(uint8_t bits);
float fp8_e5m2_to_float(uint8_t bits);
float fp8_e4m3fnuz_to_float(uint8_t bits);
float fp8_e5m2fnuz_to_float(uint8_t bits);
float fp8_e8m0fnu_to_float(uint8_t bits);

uint8_t float_to_fp8_e4m3fn(float value);
uint8_t float_to_fp8_e5m2(float value);

}  // namespace ait
