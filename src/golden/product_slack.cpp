#include "golden/product_slack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/parallel.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

// Rows that one thread takes at a time.
constexpr size_t kStripRows = 64;
// Matrix units add up at least so many products before they touch the sum, and some of them cut off
// what does not fit into it in place of rounding: errors that do not cancel each other.
constexpr double kProductsAtOnce = 16;
// As many rows and columns are looked at.
constexpr size_t kSampleRows = 8;
constexpr size_t kSampleColumns = 64;

double fourth_power(double value) { return value * value * (value * value); }

// Of numbers one after another. Several sums at a time, which the compiler puts into one vector.
double fourth_powers(const double* numbers, size_t count) {
  constexpr size_t kSums = 8;
  std::array<double, kSums> sums{};
  size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (size_t j = 0; j < kSums; ++j) sums[j] += fourth_power(numbers[i + j]);
  for (; i < count; ++i) sums[0] += fourth_power(numbers[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// The root of the sum of fourth powers of each row. Those of float32 are numbers of double.
std::vector<double> fourth_norms(const Matrix& m) {
  std::vector<double> sums(m.rows, 0.0);
  parallel_for((m.rows + kStripRows - 1) / kStripRows, 0, [&](size_t strip) {
    const size_t first = strip * kStripRows;
    const size_t last = std::min(first + kStripRows, m.rows);
    if (m.column_step == 1)
      for (size_t i = first; i < last; ++i)
        sums[i] = fourth_powers(m.data + i * m.row_step, m.columns);
    else  // along the rows of memory, where it is transposed
      for (size_t k = 0; k < m.columns; ++k)
        for (size_t i = first; i < last; ++i) sums[i] += fourth_power(m.at(i, k));
  });
  for (double& sum : sums) sum = std::sqrt(sum);
  return sums;
}

// The squares of partial sums in the order in which the terms lie, over those of a random walk: the
// average of some rows, for the worst of some columns. No less than 1.
double drift_of(const Matrix& a, const Matrix& b) {
  const size_t rows = std::min(a.rows, kSampleRows);
  const size_t columns = std::min(b.columns, kSampleColumns);
  double worst = 1;
  for (size_t j = 0; j < columns; ++j) {
    const size_t column = j * b.columns / columns;
    double total = 0;
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = i * a.rows / rows;
      Walk walk;
      for (size_t k = 0; k < a.columns; ++k) walk.add(a.at(row, k) * b.at(k, column));
      total += walk.drift();
    }
    worst = std::max(worst, total / static_cast<double>(rows));
  }
  return worst;
}

}  // namespace

ProductSlack::ProductSlack(const Matrix& a, const Matrix& b)
    : depth_(a.columns),
      row_norms_(fourth_norms(a)),
      column_norms_(fourth_norms(transposed(b))),
      drift_(drift_of(a, b)),
      // All partial sums together are at most the root of their number times that of their squares.
      with_cut_off_(1 + std::sqrt(static_cast<double>(depth_)) / (kProductsAtOnce * kMargin)) {}

double ProductSlack::at(size_t row, size_t column, double value) const {
  const double squares = row_norms_[row] * column_norms_[column];
  const double partial_squares = drift_ * walked_squares(depth_, value, squares);
  const double slack = with_cut_off_ * sum_slack_of(partial_squares, squares);
  return std::isfinite(slack) ? slack : 0;
}

}  // namespace ait::golden
