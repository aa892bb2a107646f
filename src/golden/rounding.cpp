#include "golden/rounding.h"

#include <cmath>
#include <limits>

#include "golden/rounder.h"

namespace ait::golden {

Rounder::Rounder(DType dtype) {
  const auto integers = [&](double lowest, double largest) {
    kind_ = Kind::kInteger;
    lowest_ = lowest;
    largest_ = largest;
  };
  // `digits` of the significand with the hidden one.
  const auto floats = [&](int digits, int min_exponent, double largest) {
    kind_ = Kind::kFloat;
    largest_ = largest;
    smallest_ = std::ldexp(1, min_exponent);
    largest_power_ = std::ldexp(1, std::ilogb(largest));
    half_step_ = std::ldexp(1, -digits);
    no_fraction_ = 0x1.8p52 * 2 * half_step_;
    beyond_ = std::numeric_limits<double>::infinity();
  };
  switch (dtype) {
    case DType::kFloat16:
      floats(11, -14, 65504);
      break;
    case DType::kBFloat16:
      floats(8, -126, 0x1.fep127);
      break;
    case DType::kFloat32:
      floats(24, -126, 0x1.fffffep127);
      break;
    case DType::kFloat8E4M3FN:
      floats(4, -6, 448);
      beyond_ = std::numeric_limits<double>::quiet_NaN();
      break;
    case DType::kFloat8E5M2:
      floats(3, -14, 57344);
      break;
    case DType::kBool:
      integers(0, 1);
      break;
    case DType::kInt8:
      integers(-128, 127);
      break;
    case DType::kUInt8:
      integers(0, 255);
      break;
    case DType::kInt16:
      integers(-32768, 32767);
      break;
    case DType::kUInt16:
      integers(0, 65535);
      break;
    case DType::kInt32:
      integers(-0x1p31, 0x1p31 - 1);
      break;
    case DType::kUInt32:
      integers(0, 0x1p32 - 1);
      break;
    case DType::kUInt64:
      integers(0, 0x1p64);
      break;
    case DType::kInt64:
      integers(-0x1p63, 0x1p63);
      break;
    default:
      break;
  }
}

double half_step(DType dtype, double magnitude) { return Rounder(dtype).half_step(magnitude); }

double round_to(DType dtype, double value) { return Rounder(dtype).round(value); }

double quantised(double value) { return round_to(DType::kInt8, value); }

}  // namespace ait::golden
