// Products of matrices in double precision.
#pragma once

#include <cstddef>
#include <vector>

namespace ait::golden {

// A look at numbers as a matrix; a transposed one has its steps swapped.
struct Matrix {
  const double* data;
  size_t rows;
  size_t columns;
  size_t row_step;
  size_t column_step;

  double at(size_t row, size_t column) const { return data[row * row_step + column * column_step]; }
};

inline Matrix row_major(const double* data, size_t rows, size_t columns) {
  return {data, rows, columns, columns, 1};
}
inline Matrix transposed(const Matrix& m) {
  return {m.data, m.columns, m.rows, m.column_step, m.row_step};
}

// out[i][j] = sum over k of a[i][k] * b[k][j], row-major with a.rows x b.columns numbers. The plain
// loop, which is the definition.
void multiply_plainly(const Matrix& a, const Matrix& b, double* out);

// The same in blocks on vectors and several threads (0: all cores). The result does not depend on
// their number.
void multiply(const Matrix& a, const Matrix& b, double* out, size_t threads);

// The right side of several products, laid out for them once.
class Panels {
 public:
  // Keeps its memory from one matrix to the next.
  void set(const Matrix& b);

  // The product of a and the first a.columns rows and `columns` columns, row-major, in the calling
  // thread. `tiles` is memory to work in.
  void multiply(const Matrix& a, size_t columns, std::vector<double>& tiles, double* out) const;

 private:
  size_t rows_ = 0;
  size_t row_elements_ = 0;  // with what fills up the last panel
  std::vector<double> data_;
};

// The Euclidean length of each row. Those of a's rows and b's columns bound the sums of magnitudes
// in their product (Cauchy and Schwarz).
std::vector<double> row_norms(const Matrix& m, size_t threads = 0);

}  // namespace ait::golden
