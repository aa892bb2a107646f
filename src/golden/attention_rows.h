// Queries, keys and values as the operations of attention get them: rows of tokens, and caches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "golden/attention.h"

namespace ait::golden {

// How rows of tokens lie in a tensor: the sequences packed one after another, as [tokens, heads *
// size] or [tokens, heads, size]; or each with room for as many rows as the longest, as
// [sequences, rows, heads, size] or (BNSD) [sequences, heads, rows, size].
struct TokenLayout {
  size_t heads = 0;
  size_t size = 0;       // of a head
  size_t rows = 0;       // of a sequence where they are padded, else of all together
  size_t sequences = 0;  // 0: packed
  bool heads_first = false;

  bool padded() const { return sequences != 0; }
  size_t row_step() const { return heads_first ? size : heads * size; }
  size_t head_step() const { return heads_first ? rows * size : size; }
  // Where a sequence begins; `start` counts the rows of those before it.
  size_t offset(size_t sequence, size_t start) const {
    return padded() ? sequence * rows * heads * size : start * row_step();
  }
  size_t elements() const { return (padded() ? sequences : 1) * rows * heads * size; }
};

// Of an input with so many heads for so many sequences.
Result<TokenLayout> token_layout(const Task& task, std::string_view name, size_t heads,
                                 size_t sequences, bool heads_first);

// `count` rows of one sequence, of an input or of its values that were changed.
HeadRows rows_of(const Task& task, std::string_view input, const TokenLayout& layout,
                 size_t sequence, size_t start, size_t count);
HeadRows rows_of(const Array& tokens, const TokenLayout& layout, size_t sequence, size_t start,
                 size_t count);

// Rows that were read from a cache, [rows][heads][size].
struct CachedRows {
  std::vector<double> data;
  size_t rows = 0;
  size_t heads = 0;
  size_t size = 0;

  HeadRows view() const;
};

// Heads of one beside those of the other: a row has the numbers of `a`, each head times its scale
// where there are any, then those of `b`. Both have as many rows and heads.
CachedRows join_heads(const HeadRows& a, const HeadRows& b, const std::vector<double>& scales);

// A cache of which only the rows that are needed are read. Rows lie together in pages: in blocks
// that a table names, or all of a sequence in one.
class Cache {
 public:
  // Blocks: [blocks, rows, heads, size], [blocks, rows, heads * size], BNSD [blocks, heads, rows,
  // size], FRACTAL_NZ [blocks, heads * size / 16, rows, 16] (of int8 32). Which of these it is
  // follows from the size of a head, and where that leaves it open from what is known.
  struct Known {
    bool heads_first = false;  // BNSD
    bool pieces = false;       // FRACTAL_NZ, perhaps with the dimensions of what it stands for
  };
  static Result<Cache> of_blocks(Task& task, std::string_view name, size_t heads, size_t size,
                                 const Known& known);
  // Blocks of values with heads of any size, as many and in the same order as those of the keys.
  static Result<Cache> of_blocks_like(const Task& task, std::string_view name, const Cache& keys);
  // One layer of [layers, sequences, rows, heads * size], [layers, sequences * rows, heads * size],
  // and with `layerless` [sequences, rows, heads * size]; BNSD [layers, sequences, heads, rows,
  // size]; FRACTAL_NZ [layers, sequences, heads * size / 16, rows, 16] and with BNSD [layers,
  // sequences * heads, size / 16, rows, 16].
  struct Dense {
    size_t sequences;
    size_t layer;
    bool heads_first;
    bool layerless;
  };
  static Result<Cache> of_layers(Task& task, std::string_view name, size_t heads, size_t size,
                                 const Dense& dense);

  size_t pages() const { return pages_; }
  size_t page_rows() const { return page_rows_; }
  size_t heads() const { return heads_; }
  size_t size() const { return size_; }

  // Appends rows [first, first + count) of a page, all of which exist.
  void append(size_t page, size_t first, size_t count, CachedRows& rows) const;

 private:
  enum class Order : uint8_t { kRows, kHeads, kPieces };

  Cache(const Task& task, std::string_view name) : task_(&task), name_(name) {}
  static Result<Cache> of_order(const Task& task, std::string_view name, size_t heads, Order order);

  const Task* task_;
  std::string name_;
  Order order_ = Order::kRows;
  size_t first_page_ = 0;
  size_t pages_ = 0;
  size_t page_rows_ = 0;
  size_t heads_ = 0;
  size_t size_ = 0;
  size_t width_ = 0;  // of a piece
};

// Block tables: [sequences, blocks].
struct BlockTable {
  size_t columns = 0;
  std::vector<int64_t> blocks;
};
Result<BlockTable> block_table(const Task& task, std::string_view name, size_t sequences);

// The first `count` rows of a sequence through its block table. Fails where the table is too short
// or names a block that the cache does not have.
Result<CachedRows> read_blocks(const Task& task, const Cache& cache, const BlockTable& table,
                               size_t sequence, size_t count);

}  // namespace ait::golden
