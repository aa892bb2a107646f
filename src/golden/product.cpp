#include "golden/product.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "golden/tiles.h"
#include "metrics/elements.h"

namespace ait::golden {
namespace {

// So deep are the tiles: the rows of one and a panel of b then lie in the first-level cache.
constexpr size_t kDepth = 192;
// What one task takes of the result: its panels lie in the second-level cache, and laying them out
// takes little of the time that so many rows need.
constexpr size_t kTaskColumns = 192;
constexpr size_t kTaskRows = 512;
// With fewer rows than this it costs more to lay b out for tiles than to read it as it is.
constexpr size_t kFewRows = 4;
// Of b, that one task takes where there are few rows.
constexpr size_t kStripColumns = 256;

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The numbers of up to `width` rows side by side, filled up with zeros: as a tile reads them.
void pack(const Matrix& rows, size_t width, double* out) {
  if (rows.rows < width) std::fill(out, out + rows.columns * width, 0.0);
  if (rows.row_step == 1) {
    for (size_t k = 0; k < rows.columns; ++k)
      std::copy_n(rows.data + k * rows.column_step, rows.rows, out + k * width);
    return;
  }
  // Where a row lies in one piece, eight of its numbers are read at a time: a cache line.
  constexpr size_t kRun = 8;
  const size_t run = rows.column_step == 1 ? kRun : 1;
  for (size_t k = 0; k < rows.columns; k += run)
    for (size_t i = 0; i < rows.rows; ++i)
      for (size_t j = k; j < std::min(k + run, rows.columns); ++j)
        out[j * width + i] = rows.at(i, j);
}

// One tile of the result, of which only `rows` x `columns` are there.
void add_to_result(const TileRows& a, const double* b, size_t depth, bool fresh, size_t rows,
                   size_t columns, double* out, size_t step) {
  const size_t height = tile_rows();
  const size_t width = tile_columns();
  if (height <= rows && width <= columns) return add_tile(a, b, depth, fresh, out, step);
  std::vector<double> whole(height * width);
  add_tile(a, b, depth, true, whole.data(), width);
  for (size_t r = 0; r < std::min(height, rows); ++r)
    for (size_t c = 0; c < std::min(width, columns); ++c) {
      double& number = out[r * step + c];
      number = (fresh ? 0 : number) + whole[r * width + c];
    }
}

void multiply_few_rows(const Matrix& a, const Matrix& b, double* out, size_t threads,
                       std::vector<double>& powers) {
  // Rows in one piece, whatever a is.
  std::vector<double> rows(a.rows * a.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t k = 0; k < a.columns; ++k) rows[i * a.columns + k] = a.at(i, k);
  const size_t columns = b.columns;
  std::fill(out, out + a.rows * columns, 0.0);
  parallel_for((columns + kStripColumns - 1) / kStripColumns, threads, [&](size_t strip) {
    const size_t first = strip * kStripColumns;
    const size_t count = std::min(kStripColumns, columns - first);
    std::vector<double> memory;
    if (b.row_step == 1) {  // its columns lie in one piece
      for (size_t j = first; j < first + count; ++j) {
        const double* column = in_memory(part_of(b, 0, b.rows, j, 1), memory).data;
        for (size_t i = 0; i < a.rows; ++i)
          out[i * columns + j] = dot(rows.data() + i * a.columns, column, a.columns);
        if (!powers.empty()) powers[j] = sum_fourth_powers(column, b.rows);
      }
      return;
    }
    for (size_t k = 0; k < a.columns; ++k) {
      const double* row = in_memory(part_of(b, k, 1, first, count), memory).data;
      for (size_t i = 0; i < a.rows; ++i)
        add_scaled(rows[i * a.columns + k], row, count, out + i * columns + first);
      if (!powers.empty()) add_fourth_powers(row, count, powers.data() + first);
    }
  });
}

void multiply_in_blocks(const Matrix& a, const Matrix& b, double* out, size_t threads,
                        std::vector<double>& powers) {
  const size_t columns = b.columns;
  const size_t parts = (a.rows + kTaskRows - 1) / kTaskRows;
  const size_t part_rows = round_up((a.rows + parts - 1) / parts, tile_rows());
  const size_t part_columns = round_up(kTaskColumns, tile_columns());
  const size_t strips = (columns + part_columns - 1) / part_columns;
  parallel_for(parts * strips, threads, [&](size_t task) {
    const size_t row = task % parts * part_rows;
    const size_t column = task / parts * part_columns;
    const size_t rows = std::min(part_rows, a.rows - row);
    const size_t count = std::min(part_columns, columns - column);
    Panels panels;
    for (size_t first = 0; first < a.columns; first += kDepth) {
      const size_t depth = std::min(kDepth, a.columns - first);
      panels.set(part_of(b, first, depth, column, count),
                 row == 0 && !powers.empty() ? powers.data() + column : nullptr);
      panels.multiply(part_of(a, row, rows, first, depth), count, first == 0,
                      out + row * columns + column, columns);
    }
  });
}

}  // namespace

Matrix part_of(const Matrix& m, size_t row, size_t rows, size_t column, size_t columns) {
  const size_t offset = row * m.row_step + column * m.column_step;
  Matrix part = m;
  part.rows = rows;
  part.columns = columns;
  if (m.data != nullptr) part.data += offset;
  part.first += offset;
  return part;
}

Matrix in_memory(const Matrix& m, std::vector<double>& memory) {
  if (m.data != nullptr) return m;
  if (m.column_step != 1) return transposed(in_memory(transposed(m), memory));
  memory.resize(std::max(memory.size(), m.rows * m.columns));
  for (size_t row = 0; row < m.rows; ++row)
    metrics::read_elements(*m.stored, m.first + row * m.row_step, m.columns,
                           memory.data() + row * m.columns);
  return row_major(memory.data(), m.rows, m.columns);
}

void multiply_plainly(const Matrix& a, const Matrix& b, double* out) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.columns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(k, j);
      out[i * b.columns + j] = sum;
    }
}

void multiply(const Matrix& a, const Matrix& b, double* out, size_t threads,
              std::vector<double>* column_norms) {
  std::vector<double> powers(column_norms == nullptr ? 0 : b.columns, 0.0);
  if (a.columns == 0)
    std::fill(out, out + a.rows * b.columns, 0.0);
  else if (a.rows > 0 && a.rows < kFewRows && (b.row_step == 1 || b.column_step == 1))
    multiply_few_rows(a, b, out, threads, powers);
  else if (a.rows > 0)
    multiply_in_blocks(a, b, out, threads, powers);
  if (column_norms == nullptr) return;
  for (double& value : powers) value = std::sqrt(value);
  *column_norms = std::move(powers);
}

void Panels::set(const Matrix& b, double* column_powers) {
  const size_t width = tile_columns();
  rows_ = b.rows;
  row_elements_ = round_up(b.columns, width);
  data_.resize(std::max(data_.size(), rows_ * row_elements_));
  // Columns in one piece are read panel by panel, rows all at once.
  const size_t together = b.row_step == 1 ? width : row_elements_;
  std::vector<double> powers(width);
  for (size_t first = 0; first < rows_; first += kDepth) {
    const size_t depth = std::min(kDepth, rows_ - first);
    for (size_t start = 0; start < b.columns; start += together) {
      const size_t some = std::min(together, b.columns - start);
      const Matrix columns = transposed(in_memory(part_of(b, first, depth, start, some), memory_));
      for (size_t i = 0; i < some; i += width) {
        const size_t count = std::min(width, some - i);
        double* panel = data_.data() + first * row_elements_ + (start + i) * depth;
        pack(part_of(columns, i, count, 0, depth), width, panel);
        if (column_powers == nullptr) continue;
        std::fill(powers.begin(), powers.end(), 0.0);
        for (size_t k = 0; k < depth; ++k)
          add_fourth_powers(panel + k * width, width, powers.data());
        for (size_t c = 0; c < count; ++c) column_powers[start + i + c] += powers[c];
      }
    }
  }
}

void Panels::multiply(const Matrix& a, size_t columns, bool fresh, double* out,
                      size_t out_step) const {
  const size_t height = tile_rows();
  const size_t width = tile_columns();
  if (a.columns == 0 && fresh)
    for (size_t row = 0; row < a.rows; ++row) std::fill_n(out + row * out_step, columns, 0.0);
  std::vector<double> packed;
  for (size_t first = 0; first < a.columns; first += kDepth) {
    const size_t depth = std::min(kDepth, a.columns - first);
    const size_t panel_depth = std::min(kDepth, rows_ - first);
    const double* panels = data_.data() + first * row_elements_;
    for (size_t row = 0; row < a.rows; row += height) {
      const size_t count = std::min(height, a.rows - row);
      // Rows in one piece are read where they are, but for the last, which may not fill a tile.
      TileRows rows = {a.data + row * a.row_step + first, a.row_step, 1};
      if (a.column_step != 1 || count < height) {
        packed.resize(height * kDepth);
        pack(part_of(a, row, count, first, depth), height, packed.data());
        rows = {packed.data(), 1, height};
      }
      for (size_t column = 0; column < columns; column += width)
        add_to_result(rows, panels + column * panel_depth, depth, fresh && first == 0, count,
                      columns - column, out + row * out_step + column, out_step);
    }
  }
}

std::vector<double> row_norms(const Matrix& m) {
  std::vector<double> norms(m.rows, 0.0);
  for (size_t i = 0; i < m.rows; ++i) {
    const double* row = m.data + i * m.row_step;
    norms[i] = std::sqrt(dot(row, row, m.columns));
  }
  return norms;
}

std::vector<double> fourth_norms(const Matrix& m) {
  std::vector<double> powers(m.rows, 0.0);
  parallel_for((m.rows + kStripColumns - 1) / kStripColumns, 0, [&](size_t strip) {
    const size_t first = strip * kStripColumns;
    const size_t last = std::min(first + kStripColumns, m.rows);
    if (m.column_step == 1)
      for (size_t i = first; i < last; ++i)
        powers[i] = sum_fourth_powers(m.data + i * m.row_step, m.columns);
    else if (m.row_step == 1)
      for (size_t k = 0; k < m.columns; ++k)
        add_fourth_powers(m.data + k * m.column_step + first, last - first, powers.data() + first);
    else
      for (size_t i = first; i < last; ++i)
        for (size_t k = 0; k < m.columns; ++k) powers[i] += std::pow(m.at(i, k), 4);
  });
  for (double& value : powers) value = std::sqrt(value);
  return powers;
}

}  // namespace ait::golden
