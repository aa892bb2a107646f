// Vector kernels of the error profile, as those of kernels.h. Internal to this library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "metrics/block.h"

namespace ait::metrics {

// Squares of a row or a part of one, over the positions that are finite on both sides.
struct RowSum {
  double dd = 0;
  double gg = std::numeric_limits<double>::quiet_NaN();  // NaN: there is no such position

  bool counts() const { return !std::isnan(gg); }
  void add(const RowSum& other) {
    if (!other.counts()) return;
    dd += other.dd;
    gg = counts() ? gg + other.gg : other.gg;
  }
};

// A stretch of two tensors, widened; `difference` as for pair_block_f64.
struct Doubles {
  const double* golden;
  const double* actual;
  const double* difference;

  Doubles from(size_t offset) const {
    return {golden + offset, actual + offset,
            difference != nullptr ? difference + offset : nullptr};
  }
};

// The sums of `rows` rows that follow each other, as of RowSum; at most a block at a time. f32:
// types with has_fast_kernel(), all values finite. f64: `flushed` grows as by count_flushed.
void row_sums_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                  size_t rows, size_t row_elements, double* dd, double* gg);
void row_sums_f64(const Doubles& values, size_t rows, size_t row_elements, const Scales& scales,
                  double* dd, double* gg, size_t& flushed);

// Positions where actual is 0 and golden is not, of the same types.
size_t count_flushed(DType golden_type, const void* golden, DType actual_type, const void* actual,
                     size_t elements);

// Adds the squares of at most kStripColumns columns of some rows to dd and gg, which have kStripRoom
// more places; `golden` and `actual` say where these columns begin in each row. f32: as above, of no
// more than 128 rows, values and differences up to kMaxColumnValue; what is below 2^-120 is lost.
inline constexpr size_t kStripColumns = 1024;
inline constexpr size_t kStripRoom = 64;
inline constexpr double kMaxColumnValue = 0x1p50;
void column_sums_f32(DType golden_type, const void* const* golden, DType actual_type,
                     const void* const* actual, size_t rows, size_t columns, double* dd,
                     double* gg);
// The same of one row.
void column_sums_f64(const Doubles& values, size_t columns, const Scales& scales, double* dd,
                     double* gg);

// Number i of `wanted` places spread evenly over `count`, in order; each somewhere in its share of
// them, since rows may come in periods (the heads of a token).
inline size_t spread_index(size_t i, size_t wanted, size_t count) {
  if (wanted >= count) return i;
  constexpr uint32_t kGoldenRatio = 0x9e3779b9;
  const double step = static_cast<double>(count) / static_cast<double>(wanted);
  const auto place = static_cast<int64_t>(i);
  const auto first = static_cast<int64_t>(static_cast<double>(place) * step);
  const auto end = static_cast<int64_t>(static_cast<double>(place + 1) * step);
  const double share = static_cast<double>(static_cast<uint32_t>(i) * kGoldenRatio) * 0x1p-32;
  return static_cast<size_t>(first +
                             static_cast<int64_t>(share * static_cast<double>(end - first)));
}

// Errors that differ by less are the same but for the order in which they were summed up.
inline constexpr double kAsBad = 1 - 4e-6;

// The largest of many errors dd / max(gg, least); 0 / 0 is 0.
struct Worst {
  double error = 0;
  size_t index = 0;  // the first of those that are as bad

  void add(double other, size_t other_index) {
    if (other * kAsBad > error) index = other_index;
    error = std::max(error, other);
  }
};
Worst worst_of(const double* dd, const double* gg, size_t count, double least);

// How the errors of many rows, or of many columns, are spread. All are squares.
struct Spread {
  double usual_golden = 0;  // the median of gg that are not 0; the mean where a sample has none
  double least = 0;         // `floor_share` of that: errors are dd / max(gg, least)
  double usual = 0;         // the median error
};

// Medians are the lower ones, right to 5e-4, and of more than kMedianSample values those of as
// many, spread evenly.
inline constexpr size_t kMedianSample = 256;
Spread spread_of(const double* dd, const double* gg, size_t count, double floor_share);

}  // namespace ait::metrics
