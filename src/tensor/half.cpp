#include "tensor/half.h"

#include <cmath>
#include <limits>

namespace ait {
namespace {

// Rounds a magnitude, ties to even, to the type with `mantissa_bits` and the given smallest normal
// exponent, and returns the bits of its exponent and mantissa fields.
uint32_t encode_magnitude(float magnitude, int mantissa_bits, int min_exponent) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  const int unit = (exponent - 1 < min_exponent ? min_exponent : exponent - 1) - mantissa_bits;
  // Both steps are exact but the rounding: nearbyint ties to even in the default mode.
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // The exponent field minus one, which the leading bit of a normal `units` adds; 0 for subnormals.
  const int field = unit + mantissa_bits - min_exponent;
  return (static_cast<uint32_t>(field) << mantissa_bits) + units;
}

float decode(uint32_t exponent, uint32_t mantissa, int mantissa_bits, int bias) {
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return std::ldexp(static_cast<float>(mantissa + (1u << mantissa_bits)),
                    static_cast<int>(exponent) - bias - mantissa_bits);
}

float with_sign(uint8_t bits, float magnitude) {
  return (bits & 0x80u) != 0 ? -magnitude : magnitude;
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

uint16_t float_to_fp16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return sign | 0x7e00u;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return sign | 0x7c00u;  // half-way to 2^16 and above round to Inf
  if (magnitude == 0) return sign;
  return static_cast<uint16_t>(sign | encode_magnitude(magnitude, 10, -14));
}

uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float fp8_e4m3fn_to_float(uint8_t bits) {
  if ((bits & 0x7fu) == 0x7fu) return kNaN;
  return with_sign(bits, decode((bits >> 3) & 15u, bits & 7u, 3, 7));
}

float fp8_e5m2_to_float(uint8_t bits) {
  const uint32_t exponent = (bits >> 2) & 31u;
  if (exponent == 31) return (bits & 3u) != 0 ? kNaN : with_sign(bits, kInf);
  return with_sign(bits, decode(exponent, bits & 3u, 2, 15));
}

float fp8_e4m3fnuz_to_float(uint8_t bits) {
  if (bits == 0x80u) return kNaN;
  return with_sign(bits, decode((bits >> 3) & 15u, bits & 7u, 3, 8));
}

float fp8_e5m2fnuz_to_float(uint8_t bits) {
  if (bits == 0x80u) return kNaN;
  return with_sign(bits, decode((bits >> 2) & 31u, bits & 3u, 2, 16));
}

float fp8_e8m0fnu_to_float(uint8_t bits) {
  return bits == 0xffu ? kNaN : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

// Too large a value becomes what ml_dtypes makes of it: NaN, since e4m3fn has no Inf (torch 2.13
// saturates).
uint8_t float_to_fp8_e4m3fn(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80u : 0u;
  const float magnitude = std::fabs(value);
  if (std::isnan(value) || magnitude >= 480.0f) return sign | 0x7fu;
  if (magnitude == 0) return sign;
  return static_cast<uint8_t>(sign | encode_magnitude(magnitude, 3, -6));
}

uint8_t float_to_fp8_e5m2(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80u : 0u;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7fu;
  if (magnitude >= 61440.0f) return sign | 0x7cu;
  if (magnitude == 0) return sign;
  return static_cast<uint8_t>(sign | encode_magnitude(magnitude, 2, -14));
}

}  // namespace ait
