#include "golden/product_slack.h"

#include <algorithm>
#include <cmath>

#include "golden/rounding.h"

namespace ait::golden {
namespace {

// Matrix units add up at least so many products before they touch the sum, and some of them cut off
// what does not fit into it in place of rounding: errors that do not cancel each other.
constexpr double kProductsAtOnce = 16;
// As many rows and columns are looked at.
constexpr size_t kSampleRows = 8;
constexpr size_t kSampleColumns = 64;

// The squares of partial sums in the order in which the terms lie, over those of a random walk: the
// average of some rows, for the worst of some columns. No less than 1.
double drift_of(const Matrix& a, const Matrix& b) {
  const size_t rows = std::min(a.rows, kSampleRows);
  const size_t columns = std::min(b.columns, kSampleColumns);
  double worst = 1;
  std::vector<double> memory;
  for (size_t j = 0; j < columns; ++j) {
    const Matrix column = in_memory(part_of(b, 0, b.rows, j * b.columns / columns, 1), memory);
    double total = 0;
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = i * a.rows / rows;
      Walk walk;
      for (size_t k = 0; k < a.columns; ++k) walk.add(a.at(row, k) * column.at(k, 0));
      total += walk.drift();
    }
    worst = std::max(worst, total / static_cast<double>(rows));
  }
  return worst;
}

}  // namespace

ProductSlack::ProductSlack(const Matrix& a, const Matrix& b)
    : ProductSlack(a, b, fourth_norms(transposed(b))) {}

ProductSlack::ProductSlack(const Matrix& a, const Matrix& b, std::vector<double> column_norms)
    : depth_(a.columns),
      row_norms_(fourth_norms(a)),
      column_norms_(std::move(column_norms)),
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
