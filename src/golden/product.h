// Products of matrices in double precision.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/tensor.h"

namespace ait::golden {

// A look at numbers as a matrix; a transposed one has its steps swapped. The numbers lie in memory,
// or still in a tensor of any real type, of which only what is needed is made double: a weight has
// many more elements than what is computed with it.
struct Matrix {
  const double* data;  // null: the elements of `stored` from `first` on
  size_t rows;
  size_t columns;
  size_t row_step;
  size_t column_step;  // of a tensor one of the steps is 1
  const TensorView* stored = nullptr;
  size_t first = 0;

  // Of numbers in memory.
  double at(size_t row, size_t column) const { return data[row * row_step + column * column_step]; }
};

inline Matrix row_major(const double* data, size_t rows, size_t columns) {
  return {data, rows, columns, columns, 1};
}
inline Matrix transposed(const Matrix& m) {
  return {m.data, m.columns, m.rows, m.column_step, m.row_step, m.stored, m.first};
}
// `rows` rows from `row` on, and of these `columns` columns from `column` on.
Matrix part_of(const Matrix& m, size_t row, size_t rows, size_t column, size_t columns);

// The same matrix in memory, read to `memory` where it is not there yet.
Matrix in_memory(const Matrix& m, std::vector<double>& memory);

// out[i][j] = sum over k of a[i][k] * b[k][j], row-major with a.rows x b.columns numbers. The plain
// loop, which is the definition; of matrices in memory.
void multiply_plainly(const Matrix& a, const Matrix& b, double* out);

// The same in blocks on vectors and several threads (0: all cores), where b may lie in a tensor.
// The result does not depend on their number. `column_norms` are the fourth_norms() of b's columns,
// where somebody asks for them and a has rows.
void multiply(const Matrix& a, const Matrix& b, double* out, size_t threads,
              std::vector<double>* column_norms = nullptr);

// The right side of several products, laid out for them once.
class Panels {
 public:
  // Keeps its memory from one matrix to the next. Adds the fourth powers of each
  // column to `column_powers`, unless that is null.
  void set(const Matrix& b, double* column_powers = nullptr);

  // The product of a and the first a.columns rows and `columns` columns, in the calling thread. It
  // is put to `out`, whose rows are `out_step` apart, or without `fresh` added to what is there.
  void multiply(const Matrix& a, size_t columns, bool fresh, double* out, size_t out_step) const;

 private:
  size_t rows_ = 0;
  size_t row_elements_ = 0;  // with what fills up the last panel
  std::vector<double> data_;
  std::vector<double> memory_;  // of what is read from a tensor
};

// The Euclidean length of each row of a matrix in memory whose rows lie in one piece. Those of a's
// rows and b's columns bound the sums of magnitudes in their product (Cauchy and Schwarz).
std::vector<double> row_norms(const Matrix& m);

// The root of the sum of fourth powers of each row of a matrix in memory. Those of a's rows and b's
// columns bound the sums of the squares of the terms in their product.
std::vector<double> fourth_norms(const Matrix& m);

}  // namespace ait::golden
