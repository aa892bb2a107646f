#include "golden/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ait::golden {
namespace {

// Of a floating type: bits of the significand with the hidden one, and the exponents of its
// smallest normal value and of its largest one.
struct Grid {
  int digits;
  int min_exponent;
  double largest;
};

const Grid* grid_of(DType dtype) {
  static constexpr Grid kFp16 = {11, -14, 65504};
  static constexpr Grid kBf16 = {8, -126, 0x1.fep127};
  static constexpr Grid kFp32 = {24, -126, 0x1.fffffep127};
  static constexpr Grid kE4M3 = {4, -6, 448};
  static constexpr Grid kE5M2 = {3, -14, 57344};
  switch (dtype) {
    case DType::kFloat16:
      return &kFp16;
    case DType::kBFloat16:
      return &kBf16;
    case DType::kFloat32:
      return &kFp32;
    case DType::kFloat8E4M3FN:
      return &kE4M3;
    case DType::kFloat8E5M2:
      return &kE5M2;
    default:
      return nullptr;
  }
}

// The distance of neighbours. By the bits of the double, since every element of every output asks
// for it and the functions of the library take ten times as long.
double step(const Grid& grid, double magnitude) {
  constexpr int kBias = 1023;
  constexpr int kFractionBits = 52;
  const auto biased = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> kFractionBits);
  const int exponent = std::max(biased - kBias, grid.min_exponent) - grid.digits + 1;
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kBias) << kFractionBits);
}

// To the nearest whole number, ties to even, of one below 2^51: the sum has no bits for a fraction.
double nearest_whole(double value) {
  constexpr double kNoFraction = 0x1.8p52;
  return value + kNoFraction - kNoFraction;
}

struct Range {
  double low;
  double high;
};

Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kInt8:
      return {-128, 127};
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt16:
      return {-32768, 32767};
    case DType::kUInt16:
      return {0, 65535};
    case DType::kInt32:
      return {-0x1p31, 0x1p31 - 1};
    case DType::kUInt32:
      return {0, 0x1p32 - 1};
    case DType::kUInt64:
      return {0, 0x1p64};
    default:
      return {-0x1p63, 0x1p63};
  }
}

}  // namespace

double half_step(DType dtype, double magnitude) {
  if (info(dtype).kind == DTypeKind::kInteger) return 0.5;
  const Grid* grid = grid_of(dtype);
  if (grid == nullptr || !std::isfinite(magnitude)) return 0;
  return step(*grid, std::min(std::abs(magnitude), grid->largest)) / 2;
}

double round_to(DType dtype, double value) {
  if (info(dtype).kind == DTypeKind::kInteger) {
    if (std::isnan(value)) return 0;
    const Range range = range_of(dtype);
    return std::clamp(std::nearbyint(value), range.low, range.high);
  }
  const Grid* grid = grid_of(dtype);
  if (grid == nullptr || !std::isfinite(value) || value == 0) return value;
  const double unit = step(*grid, std::abs(value));
  const double rounded = nearest_whole(value / unit) * unit;
  if (std::abs(rounded) <= grid->largest) return rounded;
  if (dtype == DType::kFloat8E4M3FN) return std::numeric_limits<double>::quiet_NaN();
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double quantised(double value) { return round_to(DType::kInt8, value); }

}  // namespace ait::golden
