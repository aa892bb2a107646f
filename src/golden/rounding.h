// Roundings: those of float32 sums, for the bounds, and those of the narrow types, for the bounds and
// where they are part of a definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tensor/dtype.h"

namespace ait::golden {

// Of float32, in which devices sum up.
inline constexpr double kFloat32Unit = 0x1p-24;

// By how much more than the expected error of its roundings a sound kernel may be off. Errors of
// many roundings add up like a random walk; four times its expected length is never reached in
// practice, and a wrong kernel is off by far more.
inline constexpr double kMargin = 4;

// What a float32 sum loses. Every partial sum is rounded, by at most kFloat32Unit of itself and up or
// down by chance, so that the sum is off by the root of the sum of their squares, times kMargin.
// `partial_squares` are those of the partial sums, `squares` those of the terms, which are products
// that were rounded before.
inline double sum_slack_of(double partial_squares, double squares) {
  return kMargin * kFloat32Unit * std::sqrt(partial_squares + squares);
}

// The squares of all partial sums that are to be expected of `count` terms in no order: on their way
// from 0 to `sum` they walk at random. (count * (sum² / 3 + squares / 6) on average. The first part
// is taken three times, for kernels that always round towards zero and for terms of which the
// largest come first, the second twice, since few walks go further.)
inline double walked_squares(size_t count, double sum, double squares) {
  return static_cast<double>(count) * (sum * sum + squares / 3);
}

// Sums up terms and keeps what a float32 sum of them may be off. Where they are ordered, such as
// all negative ones first, partial sums in that order count, which are far from a random walk. Terms
// that are nothing beside the sum are lost one and all.
class Walk {
 public:
  void add(double term) {
    if (std::abs(term) < kFloat32Unit * std::abs(sum_)) lost_ += term;
    ++count_;
    sum_ += term;
    squares_ += term * term;
    partial_squares_ += sum_ * sum_;
  }
  double sum() const { return sum_; }
  // The squares of the partial sums over those of a random walk.
  double drift() const {
    const double walked = walked_squares(count_, sum_, squares_);
    return walked > 0 && std::isfinite(partial_squares_) ? partial_squares_ / walked : 0;
  }
  // None where the sum is not finite.
  double slack() const {
    const double walked = walked_squares(count_, sum_, squares_);
    const double out = sum_slack_of(std::max(partial_squares_, walked), squares_) + std::abs(lost_);
    return std::isfinite(out) ? out : 0;
  }

 private:
  size_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double partial_squares_ = 0;
  double lost_ = 0;
};

// Half the distance to the next value of the type at this magnitude: the most that one rounding
// changes it. 0.5 for integers, 0 for float64.
double half_step(DType dtype, double magnitude);

// The nearest value of the type, ties to even; floats overflow to infinity, integers clamp. NaN
// stays, and becomes 0 in an integer.
double round_to(DType dtype, double value);

// To whole numbers, ties to even, then into the range of int8.
double quantised(double value);

}  // namespace ait::golden
