// Rounding to one type, for loops over many numbers: what rounding.h says of a type by its name.
//
//   const Rounder rounder(DType::kFloat16);
//   for (double& value : values) value = rounder.round(value);
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace ait::golden {

class Rounder {
 public:
  explicit Rounder(DType dtype);

  // As round_to().
  double round(double value) const {
    if (kind_ == Kind::kFloat) return round_float(value);
    if (kind_ == Kind::kExact) return value;
    return std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), lowest_, largest_);
  }
  void round(const double* values, size_t count, double* out) const {
    if (kind_ == Kind::kFloat)  // a loop of its own, which the compiler makes vectors of
      for (size_t i = 0; i < count; ++i) out[i] = round_float(values[i]);
    else
      for (size_t i = 0; i < count; ++i) out[i] = round(values[i]);
  }

  // As half_step().
  double half_step(double magnitude) const {
    if (kind_ == Kind::kInteger) return 0.5;
    if (kind_ == Kind::kExact || !std::isfinite(magnitude)) return 0;
    return power_below(magnitude) * half_step_;
  }

  // How far a result in this type may be from a value that is itself off by up to `slack`.
  double bound(double value, double slack) const {
    return slack + half_step(std::abs(value) + slack);
  }

  // How far the rounded values of two numbers may be apart that differ by up to `slack`: not at all
  // where no tie is near.
  double slack_of_rounded(double value, double slack) const {
    const double half = half_step(value);
    return half - std::abs(value - round(value)) > slack ? 0 : slack + 2 * half;
  }

 private:
  enum class Kind : uint8_t { kExact, kInteger, kFloat };

  // The largest power of two that is no larger, of those that the type's normal numbers have: its
  // neighbours are as far apart as those of the number. By the bits of the double, since every
  // element of every output asks for it.
  double power_below(double number) const {
    constexpr uint64_t kExponent = 0x7ff0000000000000;
    const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(number) & kExponent);
    return std::min(std::max(power, smallest_), largest_power_);
  }

  // A sum with a number so large that its last bit is a step of the type here: the sum rounds to
  // whole steps, ties to even.
  double round_float(double value) const {
    const double large = power_below(value) * no_fraction_;
    const double rounded = value + large - large;
    return std::abs(rounded) > largest_ ? std::copysign(beyond_, value) : rounded;
  }

  Kind kind_ = Kind::kExact;
  double lowest_ = 0;
  double largest_ = 0;
  // Of a floating type.
  double smallest_ = 0;       // normal number
  double largest_power_ = 0;  // of two
  double half_step_ = 0;      // at 1
  double no_fraction_ = 0;    // at 1
  double beyond_ = 0;         // what a larger number becomes
};

}  // namespace ait::golden
