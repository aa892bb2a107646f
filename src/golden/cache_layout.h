// Rows of tokens in caches of blocks, which several operations write to.
#pragma once

#include <span>

#include "golden/part.h"
#include "golden/task.h"

namespace ait::golden {

// [blocks, rows of a block, heads, width] with every row in one piece, or FRACTAL_NZ, [blocks,
// pieces, rows of a block, piece].
struct CacheLayout {
  size_t blocks = 0;
  size_t block_rows = 0;
  size_t row_elements = 0;
  size_t piece_elements = 0;

  size_t rows() const { return blocks * block_rows; }
  size_t pieces() const { return row_elements / piece_elements; }
  size_t block_elements() const { return block_rows * row_elements; }
  // Of one piece of a row, in elements.
  size_t start(size_t row, size_t piece) const {
    return ((row / block_rows * pieces() + piece) * block_rows + row % block_rows) * piece_elements;
  }
};

Result<CacheLayout> cache_layout(const Task& task, std::string_view name, size_t row_elements,
                                 bool is_fractal);

void write_row(Writes& writes, const CacheLayout& layout, size_t row,
               std::span<const double> values, std::span<const double> slack = {});

// An input that rows are written to.
struct WrittenCache {
  std::string_view name;
  size_t input;
  bool is_fractal = false;  // whatever its format says
};
// Rows of one width, one after another, each of a token; slack may be empty.
struct TokenRows {
  std::span<const double> values;
  std::span<const double> slack;
  size_t tokens;
};
// Every token's row to the row of the cache that its number in `slots` says; tokens with a negative
// one are left out.
Result<Output> write_slots(Task& task, const WrittenCache& cache, std::string_view slots,
                           const TokenRows& rows);

}  // namespace ait::golden
