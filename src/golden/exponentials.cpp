// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "golden/exponentials.cpp"
#include <hwy/foreach_target.h>
// Highway's headers come first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/exponentials.h"

HWY_BEFORE_NAMESPACE();
namespace ait::golden::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kGroupKeys>;
using V = hn::Vec<D>;

// From here on an exponential is nothing in double precision; it stands for minus infinity, too,
// which the arithmetic below could not bear.
constexpr double kFarthest = 1001;

// The largest number; NaN where there is one.
double largest_of(const double* numbers, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V largest = hn::Set(d, -std::numeric_limits<double>::infinity());
  auto wrong = hn::IsNaN(hn::Zero(d));  // none
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, numbers + i);
    wrong = hn::Or(wrong, hn::IsNaN(v));
    largest = hn::Max(largest, v);
  }
  double out = hn::GetLane(hn::MaxOfLanes(d, largest));
  bool any_wrong = !hn::AllFalse(d, wrong);
  for (; i < count; ++i) {
    any_wrong = any_wrong || std::isnan(numbers[i]);
    out = std::max(out, numbers[i]);
  }
  return any_wrong ? std::numeric_limits<double>::quiet_NaN() : out;
}

// One whole group: adds to `total`, and returns the sum of squares of what each may be off.
HWY_INLINE double group_exponentials(double* scores, double largest, const RowNoise& noise,
                                     double* each, V& total) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V m = hn::Set(d, largest);
  const V farthest = hn::Set(d, kFarthest);
  const V relative = hn::Set(d, noise.relative + noise.of_score * std::abs(largest));
  const V of_distance = hn::Set(d, 2 * noise.of_score);
  const V floor = hn::Set(d, noise.floor);
  V squares = hn::Zero(d);
  for (size_t i = 0; i < kGroupKeys; i += lanes) {
    const V distance = hn::Min(hn::Sub(m, hn::LoadU(d, scores + i)), farthest);
    const V e = hn::Exp(d, hn::Neg(distance));
    const V off = hn::MulAdd(e, hn::MulAdd(of_distance, distance, relative), hn::Min(floor, e));
    hn::StoreU(e, d, scores + i);
    if (each != nullptr) hn::StoreU(off, d, each + i);
    total = hn::Add(total, e);
    squares = hn::MulAdd(off, off, squares);
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

RowSums row_exponentials(double* scores, size_t count, const RowNoise& noise, double* noises,
                         double* each) {
  const D d;
  RowSums row;
  row.largest = largest_of(scores, count);
  if (!std::isfinite(row.largest)) return row;
  V total = hn::Zero(d);
  size_t first = 0;
  for (; first + kGroupKeys <= count; first += kGroupKeys)
    noises[first / kGroupKeys] = group_exponentials(
        scores + first, row.largest, noise, each == nullptr ? nullptr : each + first, total);
  if (first < count) {
    double padded[kGroupKeys], padded_each[kGroupKeys];
    std::fill(std::copy(scores + first, scores + count, padded), padded + kGroupKeys,
              -std::numeric_limits<double>::infinity());
    noises[first / kGroupKeys] = group_exponentials(padded, row.largest, noise, padded_each, total);
    std::copy(padded, padded + (count - first), scores + first);
    if (each != nullptr) std::copy(padded_each, padded_each + (count - first), each + first);
  }
  row.total = hn::GetLane(hn::SumOfLanes(d, total));
  for (size_t group = 0; group * kGroupKeys < count; ++group) row.noise += noises[group];
  return row;
}

}  // namespace ait::golden::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::golden {
namespace {

HWY_EXPORT(row_exponentials);

using HWY_NAMESPACE::kFarthest;

// Of a row of which the largest score is none: NaN, or infinite.
RowSums without_largest(RowSums row, double* scores, size_t count, double* noises, double* each) {
  if (row.largest == -std::numeric_limits<double>::infinity()) return row;
  row.total = std::numeric_limits<double>::quiet_NaN();
  std::fill(scores, scores + count, row.total);
  std::fill(noises, noises + (count + kGroupKeys - 1) / kGroupKeys, 0.0);
  if (each != nullptr) std::fill(each, each + count, 0.0);
  return row;
}

}  // namespace

RowSums exponentials(double* scores, size_t count, const RowNoise& noise, double* noises,
                     double* each) {
  const RowSums row = HWY_DYNAMIC_DISPATCH(row_exponentials)(scores, count, noise, noises, each);
  if (std::isfinite(row.largest)) return row;
  return without_largest(row, scores, count, noises, each);
}

RowSums exponentials_plainly(double* scores, size_t count, const RowNoise& noise, double* noises,
                             double* each) {
  RowSums row;
  row.largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) row.largest = std::max(row.largest, scores[i]);
  for (size_t i = 0; i < count; ++i)
    if (std::isnan(scores[i])) row.largest = scores[i];
  if (!std::isfinite(row.largest)) return without_largest(row, scores, count, noises, each);
  std::fill(noises, noises + (count + kGroupKeys - 1) / kGroupKeys, 0.0);
  for (size_t i = 0; i < count; ++i) {
    const double distance = std::min(row.largest - scores[i], kFarthest);
    const double e = std::exp(-distance);
    const double off =
        e * (noise.relative + noise.of_score * (std::abs(row.largest) + 2 * distance)) +
        std::min(noise.floor, e);
    scores[i] = e;
    if (each != nullptr) each[i] = off;
    noises[i / kGroupKeys] += off * off;
    row.total += e;
    row.noise += off * off;
  }
  return row;
}

}  // namespace ait::golden
#endif
