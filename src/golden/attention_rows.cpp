#include "golden/attention_rows.h"

#include <algorithm>

#include "golden/whole.h"

namespace ait::golden {
namespace {

size_t dim(const Shape& shape, size_t index) { return static_cast<size_t>(shape[index]); }

Error no_rows(const Task& task, std::string_view name, size_t heads) {
  return task.contradiction(std::string(name) + " of shape " + shape_text(task.shape(name)) +
                            " has no rows of " + std::to_string(heads) + " heads");
}

HeadRows rows_in(const TokenLayout& layout, size_t count) {
  HeadRows rows;
  rows.rows = count;
  rows.heads = layout.heads;
  rows.size = layout.size;
  rows.row_step = layout.row_step();
  rows.head_step = layout.head_step();
  return rows;
}

}  // namespace

Result<TokenLayout> token_layout(const Task& task, std::string_view name, size_t heads,
                                 size_t sequences, bool heads_first) {
  const Shape& shape = task.shape(name);
  if (task.fractal(name)) return fail(task.no_golden(std::string(name) + " in FRACTAL_NZ"));
  TokenLayout layout;
  layout.heads = heads;
  if (shape.size() == 2 && heads > 0 && dim(shape, 1) % heads == 0) {
    layout.rows = dim(shape, 0);
    layout.size = dim(shape, 1) / heads;
  } else if (shape.size() == 3 && dim(shape, 1) == heads) {
    layout.rows = dim(shape, 0);
    layout.size = dim(shape, 2);
  } else if (shape.size() == 4 && dim(shape, heads_first ? 1 : 2) == heads) {
    layout.heads_first = heads_first;
    layout.rows = dim(shape, heads_first ? 2 : 1);
    layout.size = dim(shape, 3);
    // All tokens of several sequences may stand in one.
    layout.sequences = dim(shape, 0) == 1 && sequences > 1 && !heads_first ? 0 : dim(shape, 0);
    if (layout.padded() && layout.sequences != sequences)
      return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                     " is not of " + std::to_string(sequences) + " sequences"));
  } else {
    return fail(no_rows(task, name, heads));
  }
  return layout;
}

HeadRows rows_of(const Task& task, std::string_view input, const TokenLayout& layout,
                 size_t sequence, size_t start, size_t count) {
  HeadRows rows = rows_in(layout, count);
  rows.task = &task;
  rows.input = input;
  rows.first = layout.offset(sequence, start);
  return rows;
}

HeadRows rows_of(const Array& tokens, const TokenLayout& layout, size_t sequence, size_t start,
                 size_t count) {
  HeadRows rows = rows_in(layout, count);
  rows.data = tokens.data.data() + layout.offset(sequence, start);
  return rows;
}

HeadRows CachedRows::view() const {
  HeadRows out;
  out.rows = rows;
  out.heads = heads;
  out.size = size;
  out.row_step = heads * size;
  out.head_step = size;
  out.data = data.data();
  return out;
}

CachedRows join_heads(const HeadRows& a, const HeadRows& b, const std::vector<double>& scales) {
  CachedRows out;
  out.rows = a.rows;
  out.heads = a.heads;
  out.size = a.size + b.size;
  out.data.resize(out.rows * out.heads * out.size);
  std::vector<double> memory_a, memory_b;
  for (size_t head = 0; head < a.heads; ++head) {
    const Matrix own_a = a.head(head, memory_a);
    const Matrix own_b = b.head(head, memory_b);
    const double scale = scales.empty() ? 1 : scales[head];
    for (size_t row = 0; row < a.rows; ++row) {
      double* place = out.data.data() + (row * out.heads + head) * out.size;
      for (size_t d = 0; d < a.size; ++d) place[d] = own_a.at(row, d) * scale;
      for (size_t d = 0; d < b.size; ++d) place[a.size + d] = own_b.at(row, d);
    }
  }
  return out;
}

Result<Cache> Cache::of_blocks(Task& task, std::string_view name, size_t heads, size_t size,
                               const Known& known) {
  const Shape& shape = task.shape(name);
  const size_t width = fractal_width(task.dtype(name));
  const bool four = shape.size() == 4;
  const bool by_rows = four && dim(shape, 2) == heads && dim(shape, 3) == size;
  const bool by_heads = four && dim(shape, 1) == heads && dim(shape, 3) == size;
  const bool by_pieces = four && dim(shape, 3) == width && dim(shape, 1) * width == heads * size;
  const bool pieces = known.pieces || task.fractal(name);
  if (pieces && by_rows && !by_pieces) {  // the dimensions are those of what it stands for
    auto cache = of_order(task, name, heads, Order::kRows);
    if (!cache) return cache;
    if (cache->page_rows_ % kFractalRows != 0 || heads * size % width != 0)
      return fail(task.no_golden(std::string(name) + " in FRACTAL_NZ of shape " +
                                 shape_text(shape) + ", which leaves out its padding"));
    cache->order_ = Order::kPieces;
    return cache;
  }
  Order order = Order::kRows;
  if (by_pieces && (pieces || (!by_rows && !by_heads)))
    order = Order::kPieces;
  else if (pieces)
    return fail(task.no_golden(std::string(name) + " in FRACTAL_NZ of shape " + shape_text(shape)));
  else if (by_heads && (known.heads_first || !by_rows))
    order = Order::kHeads;
  auto cache = of_order(task, name, heads, order);
  if (cache && cache->size_ != size)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " has heads of " + std::to_string(cache->size_) + ", not of " +
                                   std::to_string(size)));
  if (cache && order == Order::kHeads && !known.heads_first)
    task.note(std::string(name) + " was taken for BNSD, as its shape " + shape_text(shape) +
              " says");
  return cache;
}

Result<Cache> Cache::of_blocks_like(const Task& task, std::string_view name, const Cache& keys) {
  const Shape& shape = task.shape(name);
  auto cache = of_order(task, name, keys.heads_, keys.order_);
  if (!cache && keys.order_ == Order::kPieces) {  // the dimensions of what it stands for
    cache = of_order(task, name, keys.heads_, Order::kRows);
    if (cache && (shape.size() != 4 || cache->heads_ * cache->size_ % cache->width_ != 0))
      return fail(no_rows(task, name, keys.heads_));
    if (cache) cache->order_ = Order::kPieces;
  }
  // Heads that are no larger than a piece lie the same in both orders.
  if (!cache && keys.order_ == Order::kHeads && keys.size_ == keys.width_)
    cache = of_order(task, name, keys.heads_, Order::kPieces);
  if (cache && (cache->pages_ != keys.pages_ || cache->page_rows_ != keys.page_rows_))
    return fail(task.contradiction(std::string(name) + " has " + std::to_string(cache->pages_) +
                                   " blocks of " + std::to_string(cache->page_rows_) + ", and " +
                                   keys.name_ + " " + std::to_string(keys.pages_) + " of " +
                                   std::to_string(keys.page_rows_)));
  return cache;
}

Result<Cache> Cache::of_order(const Task& task, std::string_view name, size_t heads, Order order) {
  Cache cache(task, name);
  cache.heads_ = heads;
  cache.width_ = fractal_width(task.dtype(name));
  cache.order_ = order;
  const Shape& shape = task.shape(name);
  const size_t rank = shape.size();
  if (rank != 4 && (rank != 3 || order != Order::kRows)) return fail(no_rows(task, name, heads));
  cache.pages_ = dim(shape, 0);
  cache.page_rows_ = dim(shape, order == Order::kRows ? 1 : 2);
  size_t row_elements = heads * dim(shape, rank - 1);
  if (rank == 3) row_elements = dim(shape, 2);
  if (order == Order::kPieces) row_elements = dim(shape, 1) * cache.width_;
  const bool fits = rank == 3                 ? true
                    : order == Order::kPieces ? dim(shape, 3) == cache.width_
                    : order == Order::kHeads  ? dim(shape, 1) == heads
                                              : dim(shape, 2) == heads;
  if (!fits || row_elements % heads != 0) return fail(no_rows(task, name, heads));
  cache.size_ = row_elements / heads;
  return cache;
}

Result<Cache> Cache::of_layers(Task& task, std::string_view name, size_t heads, size_t size,
                               const Dense& dense) {
  Cache cache(task, name);
  cache.heads_ = heads;
  cache.width_ = fractal_width(task.dtype(name));
  cache.pages_ = dense.sequences;
  const Shape& shape = task.shape(name);
  const size_t rank = shape.size();
  const size_t batch = dense.sequences;
  size_t layers = 1;
  const auto last = [&](size_t from_back) { return dim(shape, rank - from_back); };
  const bool fractal = task.fractal(name);
  if (rank < 3) return fail(no_rows(task, name, heads));
  const bool in_rows = !fractal && last(1) % heads == 0 && batch != 0;
  if (rank == 5 && dense.heads_first) {
    layers = dim(shape, 0);
    cache.page_rows_ = last(2);
    if (dim(shape, 1) == batch && last(3) == heads && !fractal) {
      cache.order_ = Order::kHeads;
      cache.size_ = last(1);
    } else if (dim(shape, 1) == batch * heads && last(1) == cache.width_) {
      // Pieces of one head after the other are the pieces of a row.
      cache.order_ = Order::kPieces;
      cache.size_ = last(3) * cache.width_;
    } else {
      return fail(no_rows(task, name, heads));
    }
  } else if (rank == 5 && dim(shape, 1) == batch && last(1) == cache.width_ &&
             last(3) * cache.width_ % heads == 0) {
    layers = dim(shape, 0);
    cache.order_ = Order::kPieces;
    cache.page_rows_ = last(2);
    cache.size_ = last(3) * cache.width_ / heads;
  } else if (in_rows && rank == 4 && dim(shape, 1) == batch) {
    layers = dim(shape, 0);
    cache.page_rows_ = last(2);
    cache.size_ = last(1) / heads;
  } else if (in_rows && rank == 3 && !dense.layerless && last(2) % batch == 0) {
    layers = dim(shape, 0);
    cache.page_rows_ = last(2) / batch;
    cache.size_ = last(1) / heads;
  } else if (in_rows && rank == 3 && dim(shape, 0) == batch) {
    cache.page_rows_ = last(2);
    cache.size_ = last(1) / heads;
  } else {
    return fail(no_rows(task, name, heads));
  }
  if (size != 0 && cache.size_ != size)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " has heads of " + std::to_string(cache.size_) + ", not of " +
                                   std::to_string(size)));
  if (dense.layer >= layers)
    return fail(task.contradiction("layerId is " + std::to_string(dense.layer) + ", and " +
                                   std::string(name) + " has " + std::to_string(layers) +
                                   " layers"));
  cache.first_page_ = dense.layer * batch;
  return cache;
}

void Cache::append(size_t page, size_t first, size_t count, CachedRows& rows) const {
  const size_t row_elements = heads_ * size_;
  const size_t page_start = (first_page_ + page) * page_rows_ * row_elements;
  rows.heads = heads_;
  rows.size = size_;
  const size_t old = rows.rows;
  rows.rows += count;
  rows.data.resize(rows.rows * row_elements);
  double* out = rows.data.data() + old * row_elements;
  if (order_ == Order::kRows)
    return task_->read(name_, page_start + first * row_elements, count * row_elements, out);
  std::vector<double> read;
  // Stretches of `width` numbers, all rows of one after all rows of another.
  const size_t width = order_ == Order::kHeads ? size_ : width_;
  for (size_t stretch = 0; stretch < row_elements / width; ++stretch) {
    task_->read(name_, page_start + (stretch * page_rows_ + first) * width, count * width, read);
    for (size_t row = 0; row < count; ++row)
      std::copy_n(read.begin() + static_cast<ptrdiff_t>(row * width), width,
                  out + row * row_elements + stretch * width);
  }
}

Result<BlockTable> block_table(const Task& task, std::string_view name, size_t sequences) {
  auto blocks = whole_numbers(task, name);
  if (!blocks) return fail(blocks.error());
  const Shape& shape = task.shape(name);
  if (shape.size() != 2 || dim(shape, 0) != sequences)
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " is not a table of " + std::to_string(sequences) +
                                   " sequences"));
  return BlockTable{dim(shape, 1), std::move(*blocks)};
}

Result<CachedRows> read_blocks(const Task& task, const Cache& cache, const BlockTable& table,
                               size_t sequence, size_t count) {
  const size_t block_rows = cache.page_rows();
  if (count > 0 && (block_rows == 0 || (count - 1) / block_rows >= table.columns))
    return fail(task.contradiction("sequence " + std::to_string(sequence) + " has " +
                                   std::to_string(count) + " rows, and its " +
                                   std::to_string(table.columns) + " blocks have " +
                                   std::to_string(table.columns * block_rows)));
  CachedRows rows;
  rows.heads = cache.heads();
  rows.size = cache.size();
  rows.data.reserve(count * rows.heads * rows.size);
  for (size_t row = 0; row < count; row += block_rows) {
    const int64_t block = table.blocks[sequence * table.columns + row / block_rows];
    if (block < 0 || static_cast<size_t>(block) >= cache.pages())
      return fail(task.contradiction("the block table of sequence " + std::to_string(sequence) +
                                     " names block " + std::to_string(block) + ", and there are " +
                                     std::to_string(cache.pages())));
    cache.append(static_cast<size_t>(block), 0, std::min(block_rows, count - row), rows);
  }
  return rows;
}

}  // namespace ait::golden
