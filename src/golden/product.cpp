// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "golden/product.cpp"
#include <hwy/foreach_target.h>
// Highway's headers come first.
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "golden/product.h"

HWY_BEFORE_NAMESPACE();
namespace ait::golden::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;

// The tile that stays in registers: rows of a, and vectors of columns of b.
constexpr size_t kTileRows = 4;
constexpr size_t kTileVectors = 3;

size_t tile_columns() { return kTileVectors * hn::Lanes(D()); }

// Adds the product of one tile: `a` holds kTileRows numbers for each of `depth` steps, `b` a whole
// row of the tile for each.
void add_tile(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, size_t depth,
              double* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<D> s00 = hn::Zero(d), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
  hn::Vec<D> s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
  for (size_t k = 0; k < depth; ++k) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    const auto b2 = hn::LoadU(d, b + 2 * lanes);
    const auto a0 = hn::Set(d, a[0]);
    s00 = hn::MulAdd(a0, b0, s00);
    s01 = hn::MulAdd(a0, b1, s01);
    s02 = hn::MulAdd(a0, b2, s02);
    const auto a1 = hn::Set(d, a[1]);
    s10 = hn::MulAdd(a1, b0, s10);
    s11 = hn::MulAdd(a1, b1, s11);
    s12 = hn::MulAdd(a1, b2, s12);
    const auto a2 = hn::Set(d, a[2]);
    s20 = hn::MulAdd(a2, b0, s20);
    s21 = hn::MulAdd(a2, b1, s21);
    s22 = hn::MulAdd(a2, b2, s22);
    const auto a3 = hn::Set(d, a[3]);
    s30 = hn::MulAdd(a3, b0, s30);
    s31 = hn::MulAdd(a3, b1, s31);
    s32 = hn::MulAdd(a3, b2, s32);
    a += kTileRows;
    b += kTileVectors * lanes;
  }
  const auto add = [&](size_t row, size_t vector, const hn::Vec<D>& sum) HWY_ATTR {
    double* place = out + (row * kTileVectors + vector) * lanes;
    hn::StoreU(hn::Add(hn::LoadU(d, place), sum), d, place);
  };
  add(0, 0, s00), add(0, 1, s01), add(0, 2, s02);
  add(1, 0, s10), add(1, 1, s11), add(1, 2, s12);
  add(2, 0, s20), add(2, 1, s21), add(2, 2, s22);
  add(3, 0, s30), add(3, 1, s31), add(3, 2, s32);
}

}  // namespace ait::golden::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::golden {
namespace {

HWY_EXPORT(add_tile);
HWY_EXPORT(tile_columns);

using HWY_NAMESPACE::kTileRows;
// What one thread takes: so many rows of a stay in its second-level cache, `kDepth` deep.
constexpr size_t kBlockRows = 96;
constexpr size_t kDepth = 256;

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Numbers [first, first + depth) of the rows or columns of a matrix, `width` at a time side by side,
// filled up with zeros: as a tile reads them.
void pack(const Matrix& rows, size_t first_row, size_t row_count, size_t first, size_t depth,
          size_t width, double* out) {
  for (size_t group = 0; group < row_count; group += width)
    for (size_t k = 0; k < depth; ++k)
      for (size_t i = 0; i < width; ++i)
        *out++ = group + i < row_count ? rows.at(first_row + group + i, first + k) : 0.0;
}

}  // namespace

void multiply_plainly(const Matrix& a, const Matrix& b, double* out) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.columns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(k, j);
      out[i * b.columns + j] = sum;
    }
}

void multiply(const Matrix& a, const Matrix& b, double* out, size_t threads) {
  const size_t columns = b.columns;
  const size_t width = HWY_DYNAMIC_DISPATCH(tile_columns)();
  std::fill(out, out + a.rows * columns, 0.0);
  std::vector<double> packed(round_up(columns, width) * std::min(kDepth, a.columns));
  const size_t blocks = (a.rows + kBlockRows - 1) / kBlockRows;
  const size_t panels = (columns + width - 1) / width;
  for (size_t first = 0; first < a.columns; first += kDepth) {
    const size_t depth = std::min(kDepth, a.columns - first);
    const Matrix by_column = transposed(b);
    parallel_for(panels, threads, [&](size_t panel) {
      const size_t column = panel * width;
      pack(by_column, column, std::min(width, columns - column), first, depth, width,
           packed.data() + column * depth);
    });
    parallel_for(blocks, threads, [&](size_t block) {
      const size_t row = block * kBlockRows;
      const size_t rows = std::min(kBlockRows, a.rows - row);
      std::vector<double> mine(round_up(rows, kTileRows) * depth);
      pack(a, row, rows, first, depth, kTileRows, mine.data());
      std::vector<double> sums(kTileRows * width);
      for (size_t panel = 0; panel < panels; ++panel)
        for (size_t i = 0; i < rows; i += kTileRows) {
          std::fill(sums.begin(), sums.end(), 0.0);
          HWY_DYNAMIC_DISPATCH(add_tile)
          (mine.data() + i * depth, packed.data() + panel * width * depth, depth, sums.data());
          const size_t wide = std::min(width, columns - panel * width);
          for (size_t r = 0; r < std::min(kTileRows, rows - i); ++r)
            for (size_t c = 0; c < wide; ++c)
              out[(row + i + r) * columns + panel * width + c] += sums[r * width + c];
        }
    });
  }
}

}  // namespace ait::golden
#endif
