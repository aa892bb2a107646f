// What float32 sums may be off in a product of two matrices (rounding.h). Its terms are not looked at
// one by one, which would cost as much as the product: their squares are no more than the norms of
// fourth powers explain (Cauchy and Schwarz), and whether partial sums are a random walk is asked of
// a sample of rows and columns.
#pragma once

#include <vector>

#include "golden/product.h"

namespace ait::golden {

class ProductSlack {
 public:
  ProductSlack(const Matrix& a, const Matrix& b);
  // With the fourth_norms() of b's columns, which multiply() gives on its way.
  ProductSlack(const Matrix& a, const Matrix& b, std::vector<double> column_norms);

  // Of one element of the product, which is `value`. None where that is not finite.
  double at(size_t row, size_t column, double value) const;

 private:
  size_t depth_;
  std::vector<double> row_norms_;
  std::vector<double> column_norms_;
  double drift_;         // by how much partial sums exceed a random walk, as squares
  double with_cut_off_;  // how much more there is where kernels do not round but cut off
};

}  // namespace ait::golden
