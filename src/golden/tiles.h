// The vector kernels of products (product.h), compiled for every instruction set and chosen at run
// time. Internal to product.cpp.
#pragma once

#include <cstddef>

namespace ait::golden {

// The tile of a product that stays in registers: so many rows of the left side and columns of the
// right one.
size_t tile_rows();
size_t tile_columns();

// The rows of the left side that a tile reads: the numbers of a row lie `step` apart.
struct TileRows {
  const double* data;
  size_t row_step;
  size_t step;
};

// Adds the product of one tile to `out`, whose rows are `out_step` apart, or with `fresh` puts it
// there: `a` has tile_rows() rows of `depth` numbers, `b` tile_columns() numbers for each of these.
void add_tile(const TileRows& a, const double* b, size_t depth, bool fresh, double* out,
              size_t out_step);

// The sum of a[i] * b[i].
double dot(const double* a, const double* b, size_t count);

// out[i] += factor * numbers[i].
void add_scaled(double factor, const double* numbers, size_t count, double* out);

// out[i] += numbers[i]⁴, and the sum of all of these.
void add_fourth_powers(const double* numbers, size_t count, double* out);
double sum_fourth_powers(const double* numbers, size_t count);

}  // namespace ait::golden
