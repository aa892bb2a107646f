#include "golden/cache_layout.h"

#include "golden/whole.h"

namespace ait::golden {

Result<CacheLayout> cache_layout(const Task& task, std::string_view name, size_t row_elements,
                                 bool is_fractal) {
  const Shape& shape = task.shape(name);
  const auto dim = [&](size_t i) { return static_cast<size_t>(shape[i]); };
  const bool in_rows = (shape.size() == 4 && dim(2) * dim(3) == row_elements) ||
                       (shape.size() == 3 && dim(2) == row_elements);
  const bool in_pieces =
      shape.size() == 4 && (dim(3) == 16 || dim(3) == 32) && dim(1) * dim(3) == row_elements;
  // A dump does not always tell the format, but only small caches can be read in both ways.
  if (in_rows && !is_fractal && !task.fractal(name))
    return CacheLayout{dim(0), dim(1), row_elements, row_elements};
  if (in_pieces) return CacheLayout{dim(0), dim(2), row_elements, dim(3)};
  return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                 " is not a cache for rows of " + std::to_string(row_elements) +
                                 " elements"));
}

void write_row(Writes& writes, const CacheLayout& layout, size_t row,
               std::span<const double> values, std::span<const double> slack) {
  const size_t length = layout.piece_elements;
  for (size_t piece = 0; piece < layout.pieces(); ++piece)
    writes.add(layout.start(row, piece), values.subspan(piece * length, length),
               slack.empty() ? slack : slack.subspan(piece * length, length));
}

Result<Output> write_slots(Task& task, const WrittenCache& cache, std::string_view slots,
                           const TokenRows& rows) {
  const size_t width = rows.tokens == 0 ? 0 : rows.values.size() / rows.tokens;
  const auto layout = cache_layout(task, cache.name, width, cache.is_fractal);
  if (!layout) return fail(layout.error());
  const auto numbers = whole_numbers(task, slots);
  if (!numbers) return fail(numbers.error());
  if (numbers->size() != rows.tokens)
    return fail(task.contradiction("there are " + std::to_string(numbers->size()) + " slots for " +
                                   std::to_string(rows.tokens) + " tokens"));
  if (auto room = task.make_room(rows.values.size(), 2); !room) return fail(room.error());
  Writes writes(cache.input, task.shape(cache.name), layout->piece_elements);
  for (size_t token = 0; token < rows.tokens; ++token) {
    const int64_t slot = (*numbers)[token];
    if (slot < 0) continue;
    if (static_cast<size_t>(slot) >= layout->rows())
      return fail(task.contradiction("the slot " + std::to_string(slot) + " of token " +
                                     std::to_string(token) + " is not one of the " +
                                     std::to_string(layout->rows()) + " of " +
                                     std::string(cache.name)));
    write_row(writes, *layout, static_cast<size_t>(slot), rows.values.subspan(token * width, width),
              rows.slack.empty() ? rows.slack : rows.slack.subspan(token * width, width));
  }
  return std::move(writes).finish(task);
}

}  // namespace ait::golden
