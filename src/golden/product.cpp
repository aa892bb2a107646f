// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "golden/product.cpp"
#include <hwy/foreach_target.h>
// Highway's headers come first.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "golden/product.h"

// Of each target alike.
#ifndef AIT_GOLDEN_PRODUCT_ROWS
#define AIT_GOLDEN_PRODUCT_ROWS
namespace ait::golden {
// Rows of a matrix as a tile reads them: the numbers of a row lie `step` apart.
struct Rows {
  const double* data;
  size_t row_step;
  size_t step;
};
}  // namespace ait::golden
#endif

HWY_BEFORE_NAMESPACE();
namespace ait::golden::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

// The tile that stays in registers: rows of a, and vectors of columns of b. AVX2 and what is below
// it have 16 registers, the others 32.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr size_t kTileRows = 4;
#else
constexpr size_t kTileRows = 8;
#endif
constexpr size_t kTileVectors = 3;

size_t tile_rows() { return kTileRows; }
size_t tile_columns() { return kTileVectors * hn::Lanes(D()); }

// Adds the product of one tile to `out`, whose rows are `step` apart, or with `fresh` puts it there:
// `a` has kTileRows rows with `depth` numbers, `b` holds a whole row of the tile for each of these.
void add_tile(const Rows& a, const double* HWY_RESTRICT b, size_t depth, bool fresh,
              double* HWY_RESTRICT out, size_t step) {
  const D d;
  const double* HWY_RESTRICT numbers = a.data;
  const size_t lanes = hn::Lanes(d);
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
  V s40 = s00, s41 = s00, s42 = s00, s50 = s00, s51 = s00, s52 = s00;
  V s60 = s00, s61 = s00, s62 = s00, s70 = s00, s71 = s00, s72 = s00;
  for (size_t k = 0; k < depth; ++k) {
    const V b0 = hn::LoadU(d, b);
    const V b1 = hn::LoadU(d, b + lanes);
    const V b2 = hn::LoadU(d, b + 2 * lanes);
    const auto add_row = [&](size_t row, V& s0, V& s1, V& s2) HWY_ATTR {
      const V number = hn::Set(d, numbers[row * a.row_step]);
      s0 = hn::MulAdd(number, b0, s0);
      s1 = hn::MulAdd(number, b1, s1);
      s2 = hn::MulAdd(number, b2, s2);
    };
    add_row(0, s00, s01, s02);
    add_row(1, s10, s11, s12);
    add_row(2, s20, s21, s22);
    add_row(3, s30, s31, s32);
    if constexpr (kTileRows == 8) {
      add_row(4, s40, s41, s42);
      add_row(5, s50, s51, s52);
      add_row(6, s60, s61, s62);
      add_row(7, s70, s71, s72);
    }
    numbers += a.step;
    b += kTileVectors * lanes;
  }
  const auto store_row = [&](size_t row, const V& s0, const V& s1, const V& s2) HWY_ATTR {
    double* place = out + row * step;
    if (fresh) {
      hn::StoreU(s0, d, place);
      hn::StoreU(s1, d, place + lanes);
      hn::StoreU(s2, d, place + 2 * lanes);
      return;
    }
    hn::StoreU(hn::Add(hn::LoadU(d, place), s0), d, place);
    hn::StoreU(hn::Add(hn::LoadU(d, place + lanes), s1), d, place + lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, place + 2 * lanes), s2), d, place + 2 * lanes);
  };
  store_row(0, s00, s01, s02);
  store_row(1, s10, s11, s12);
  store_row(2, s20, s21, s22);
  store_row(3, s30, s31, s32);
  if constexpr (kTileRows == 8) {
    store_row(4, s40, s41, s42);
    store_row(5, s50, s51, s52);
    store_row(6, s60, s61, s62);
    store_row(7, s70, s71, s72);
  }
}

// The sum of the products of neighbours.
double dot(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// out += factor * numbers.
void add_scaled(double factor, const double* HWY_RESTRICT numbers, size_t count,
                double* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V f = hn::Set(d, factor);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, numbers + i), hn::LoadU(d, out + i)), d, out + i);
  for (; i < count; ++i) out[i] += factor * numbers[i];
}

// out += numbers * numbers, of each.
void add_squares(const double* HWY_RESTRICT numbers, size_t count, double* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, numbers + i);
    hn::StoreU(hn::MulAdd(v, v, hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] += numbers[i] * numbers[i];
}

}  // namespace ait::golden::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::golden {
namespace {

HWY_EXPORT(add_scaled);
HWY_EXPORT(add_squares);
HWY_EXPORT(add_tile);
HWY_EXPORT(dot);
HWY_EXPORT(tile_columns);
HWY_EXPORT(tile_rows);

// So deep are the tiles: a panel of b then lies in the first-level cache.
constexpr size_t kDepth = 192;
// What one task takes: rows of a that stay in the second-level cache, and panels of b that give it
// enough to do.
constexpr size_t kBlockRows = 96;
constexpr size_t kGroupPanels = 16;
// With fewer rows than this it costs more to lay b out for tiles than to read it as it is.
constexpr size_t kFewRows = 4;
// Of b, that one task takes where there are few rows.
constexpr size_t kStripColumns = 256;

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Numbers [first, first + depth) of `row_count` rows, `width` rows side by side and filled up with
// zeros: as a tile reads them.
void pack(const Matrix& rows, size_t first_row, size_t row_count, size_t first, size_t depth,
          size_t width, double* out) {
  if (row_count < width) std::fill(out, out + depth * width, 0.0);
  const double* from = rows.data + first_row * rows.row_step + first * rows.column_step;
  // Where a row lies in one piece, eight of its numbers are read at a time: a cache line.
  constexpr size_t kRun = 8;
  const size_t run = rows.column_step == 1 ? kRun : 1;
  for (size_t k = 0; k < depth; k += run)
    for (size_t i = 0; i < row_count; ++i)
      for (size_t j = k; j < std::min(k + run, depth); ++j)
        out[j * width + i] = from[i * rows.row_step + j * rows.column_step];
}

// All rows as tiles read them, tile after tile.
void pack_all(const Matrix& rows, size_t first, size_t depth, size_t width, size_t threads,
              double* out) {
  parallel_for((rows.rows + width - 1) / width, threads, [&](size_t tile) {
    const size_t row = tile * width;
    pack(rows, row, std::min(width, rows.rows - row), first, depth, width, out + row * depth);
  });
}

// One tile at `row` and `column` of the result, which may reach beyond its end.
void add_to_result(const Rows& a, const double* b, size_t depth, bool fresh, size_t row,
                   size_t column, size_t rows, size_t columns, double* out) {
  const size_t height = HWY_DYNAMIC_DISPATCH(tile_rows)();
  const size_t width = HWY_DYNAMIC_DISPATCH(tile_columns)();
  double* place = out + row * columns + column;
  if (row + height <= rows && column + width <= columns) {
    HWY_DYNAMIC_DISPATCH(add_tile)(a, b, depth, fresh, place, columns);
    return;
  }
  std::vector<double> whole(height * width);
  HWY_DYNAMIC_DISPATCH(add_tile)(a, b, depth, true, whole.data(), width);
  for (size_t r = 0; r < std::min(height, rows - row); ++r)
    for (size_t c = 0; c < std::min(width, columns - column); ++c) {
      double& number = place[r * columns + c];
      number = (fresh ? 0 : number) + whole[r * width + c];
    }
}

void multiply_few_rows(const Matrix& a, const Matrix& b, double* out, size_t threads) {
  // Rows in one piece, whatever a is.
  std::vector<double> rows(a.rows * a.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t k = 0; k < a.columns; ++k) rows[i * a.columns + k] = a.at(i, k);
  const size_t columns = b.columns;
  parallel_for((columns + kStripColumns - 1) / kStripColumns, threads, [&](size_t strip) {
    const size_t first = strip * kStripColumns;
    const size_t count = std::min(kStripColumns, columns - first);
    if (b.row_step == 1) {  // its columns lie in one piece
      for (size_t j = first; j < first + count; ++j)
        for (size_t i = 0; i < a.rows; ++i)
          out[i * columns + j] = HWY_DYNAMIC_DISPATCH(dot)(rows.data() + i * a.columns,
                                                           b.data + j * b.column_step, a.columns);
      return;
    }
    for (size_t k = 0; k < a.columns; ++k)
      for (size_t i = 0; i < a.rows; ++i) HWY_DYNAMIC_DISPATCH(add_scaled)
    (rows[i * a.columns + k], b.data + k * b.row_step + first, count, out + i * columns + first);
  });
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
  std::fill(out, out + a.rows * columns, 0.0);
  if (a.rows == 0 || columns == 0 || a.columns == 0) return;
  if (a.rows < kFewRows && (b.row_step == 1 || b.column_step == 1))
    return multiply_few_rows(a, b, out, threads);
  const size_t height = HWY_DYNAMIC_DISPATCH(tile_rows)();
  const size_t width = HWY_DYNAMIC_DISPATCH(tile_columns)();
  const size_t deepest = std::min(kDepth, a.columns);
  std::vector<double> tiles(round_up(a.rows, height) * deepest);
  std::vector<double> panels(round_up(columns, width) * deepest);
  const size_t blocks = (a.rows + kBlockRows - 1) / kBlockRows;
  const size_t groups = (columns + kGroupPanels * width - 1) / (kGroupPanels * width);
  for (size_t first = 0; first < a.columns; first += kDepth) {
    const size_t depth = std::min(kDepth, a.columns - first);
    pack_all(a, first, depth, height, threads, tiles.data());
    pack_all(transposed(b), first, depth, width, threads, panels.data());
    parallel_for(blocks * groups, threads, [&](size_t task) {
      const size_t first_row = task % blocks * kBlockRows;
      const size_t last_row = std::min(first_row + kBlockRows, a.rows);
      const size_t first_column = task / blocks * kGroupPanels * width;
      const size_t last_column = std::min(first_column + kGroupPanels * width, columns);
      for (size_t column = first_column; column < last_column; column += width)
        for (size_t row = first_row; row < last_row; row += height)
          add_to_result({tiles.data() + row * depth, 1, height}, panels.data() + column * depth,
                        depth, false, row, column, a.rows, columns, out);
    });
  }
}

void Panels::set(const Matrix& b) {
  rows_ = b.rows;
  row_elements_ = round_up(b.columns, HWY_DYNAMIC_DISPATCH(tile_columns)());
  if (data_.size() < rows_ * row_elements_) data_.resize(rows_ * row_elements_);
  for (size_t first = 0; first < rows_; first += kDepth)
    pack_all(transposed(b), first, std::min(kDepth, rows_ - first),
             HWY_DYNAMIC_DISPATCH(tile_columns)(), 1, data_.data() + first * row_elements_);
}

void Panels::multiply(const Matrix& a, size_t columns, std::vector<double>& tiles,
                      double* out) const {
  const size_t height = HWY_DYNAMIC_DISPATCH(tile_rows)();
  const size_t width = HWY_DYNAMIC_DISPATCH(tile_columns)();
  if (a.columns == 0) std::fill(out, out + a.rows * columns, 0.0);
  // Rows in one piece are read where they are, but for the last, which may not fill a tile.
  const size_t direct = a.column_step == 1 ? a.rows / height * height : 0;
  const Matrix others = {a.data + direct * a.row_step, a.rows - direct, a.columns, a.row_step,
                         a.column_step};
  const size_t needed = round_up(others.rows, height) * std::min(kDepth, a.columns);
  if (tiles.size() < needed) tiles.resize(needed);
  for (size_t first = 0; first < a.columns; first += kDepth) {
    const size_t depth = std::min(kDepth, a.columns - first);
    const double* panels = data_.data() + first * row_elements_;
    const size_t panel_depth = std::min(kDepth, rows_ - first);
    pack_all(others, first, depth, height, 1, tiles.data());
    for (size_t block = 0; block < a.rows; block += kBlockRows)
      for (size_t column = 0; column < columns; column += width)
        for (size_t row = block; row < std::min(block + kBlockRows, a.rows); row += height) {
          Rows rows = {a.data + row * a.row_step + first, a.row_step, 1};
          if (row >= direct) rows = {tiles.data() + (row - direct) * depth, 1, height};
          add_to_result(rows, panels + column * panel_depth, depth, first == 0, row, column, a.rows,
                        columns, out);
        }
  }
}

std::vector<double> row_norms(const Matrix& m, size_t threads) {
  std::vector<double> squares(m.rows, 0.0);
  parallel_for((m.rows + kStripColumns - 1) / kStripColumns, threads, [&](size_t strip) {
    const size_t first = strip * kStripColumns;
    const size_t last = std::min(first + kStripColumns, m.rows);
    if (m.column_step == 1)
      for (size_t i = first; i < last; ++i) {
        const double* row = m.data + i * m.row_step;
        squares[i] = HWY_DYNAMIC_DISPATCH(dot)(row, row, m.columns);
      }
    else if (m.row_step == 1)
      for (size_t k = 0; k < m.columns; ++k) HWY_DYNAMIC_DISPATCH(add_squares)
    (m.data + k * m.column_step + first, last - first, squares.data() + first);
    else for (size_t i = first; i < last; ++i) for (size_t k = 0; k < m.columns; ++k) squares[i] +=
        m.at(i, k) * m.at(i, k);
  });
  for (double& value : squares) value = std::sqrt(value);
  return squares;
}

}  // namespace ait::golden
#endif
