#include "golden/attention_mask.h"

#include <algorithm>

namespace ait::golden {
namespace {

// What the library multiplies flags by.
constexpr double kFlagged = -3e38;
// A term that is at least as low hides a key: the library's masks hold -10000 and lower.
constexpr double kHides = -5000;
constexpr size_t kFractalWidth = 16;
// Up to here a mask is held in memory.
constexpr size_t kSmall = size_t{1} << 22;
// Numbers of a larger one that are looked at together to tell flags from terms.
constexpr size_t kLook = size_t{1} << 18;

}  // namespace

KeyRange causal_keys(size_t position, size_t keys) { return {0, std::min(position + 1, keys)}; }

KeyRange window_keys(size_t position, size_t window, size_t keys) {
  const size_t first = position + 1 > window ? position + 1 - window : 0;
  return {first, std::min(position + 1, keys)};
}

Result<MaskTensor> MaskTensor::of(Task& task, std::string_view name, size_t sequences, size_t heads,
                                  First first, Style style) {
  MaskTensor mask(task, name);
  const Shape& shape = task.shape(name);
  const size_t rank = shape.size();
  const auto wrong = [&] {
    return fail(task.contradiction(std::string(name) + " of shape " + shape_text(shape) +
                                   " is not a mask of " + std::to_string(sequences) +
                                   " sequences and " + std::to_string(heads) + " heads"));
  };
  if (rank < 2 || rank > 4) return wrong();
  const auto dim = [&](size_t from_back) { return static_cast<size_t>(shape[rank - from_back]); };
  const bool by_heads =
      rank == 4 && (dim(4) == sequences || dim(4) == 1) && (dim(3) == heads || dim(3) == 1);
  // 310P stores [masks, columns / 16, rows, 16]; some dumps do not say so.
  const bool pieces =
      rank >= 3 && dim(1) == kFractalWidth && (task.fractal(name) || (rank == 4 && !by_heads));
  const bool fractal = pieces || task.fractal(name);
  mask.rows_ = dim(2);
  mask.columns_ = pieces ? dim(3) * kFractalWidth : dim(1);
  size_t masks = 1;
  for (size_t from_back = pieces ? 4 : 3; from_back <= rank; ++from_back) masks *= dim(from_back);
  if (by_heads && !fractal) {
    mask.sequences_ = dim(4);
    mask.heads_ = dim(3);
  } else if (masks == heads && first == First::kHeads) {
    mask.heads_ = heads;
  } else if (masks == sequences) {
    mask.sequences_ = sequences;
  } else if (masks == sequences * heads) {
    mask.sequences_ = sequences;
    mask.heads_ = heads;
  } else if (masks != 1) {
    return wrong();
  }
  if (auto read = mask.read(task, fractal); !read) return fail(read.error());
  if (style == Style::kFlagsOrTerms && mask.holds_flags()) mask.factor_ = kFlagged;
  return mask;
}

Result<void> MaskTensor::read(Task& task, bool fractal) {
  const size_t masks = sequences_ * heads_;
  const size_t elements = masks * rows_ * columns_;
  if (!fractal && elements > kSmall) return {};
  if (auto room = task.make_room(elements, fractal ? 2 : 1); !room) return room;
  Array stored = task.values(name_);
  if (fractal) {
    if (rows_ % kFractalWidth != 0 || columns_ % kFractalWidth != 0)
      return fail(task.no_golden(name_ + " in FRACTAL_NZ of shape " +
                                 shape_text(task.shape(name_)) + ", which leaves out its padding"));
    stored.shape = {static_cast<int64_t>(masks), static_cast<int64_t>(columns_ / kFractalWidth),
                    static_cast<int64_t>(rows_), static_cast<int64_t>(kFractalWidth)};
    stored = from_fractal(stored, rows_, columns_);
  }
  values_ = std::move(stored.data);
  return {};
}

bool MaskTensor::holds_flags() const {
  const auto positive = [](double value) { return value > 0; };
  if (!values_.empty()) return std::any_of(values_.begin(), values_.end(), positive);
  const size_t count = sequences_ * heads_ * rows_ * columns_;
  std::vector<double> values;
  for (size_t first = 0; first < count; first += kLook) {
    const size_t some = std::min(kLook, count - first);
    task_->read(name_, first, some, values);
    if (std::any_of(values.begin(), values.begin() + static_cast<ptrdiff_t>(some), positive))
      return true;
  }
  return false;
}

bool MaskTensor::add(size_t sequence, size_t head, size_t row, KeyRange keys,
                     double* scores) const {
  const size_t mask = (sequences_ == 1 ? 0 : sequence) * heads_ + (heads_ == 1 ? 0 : head);
  const size_t first = (mask * rows_ + (rows_ == 1 ? 0 : row)) * columns_ + keys.first;
  std::vector<double> read;
  const double* values = values_.data() + first;
  if (values_.empty()) {
    task_->read(name_, first, keys.count(), read);
    values = read.data();
  }
  size_t shown = 0;
  for (size_t j = 0; j < keys.count(); ++j) {
    const double term = factor_ * values[j];
    shown += term <= kHides ? 0 : 1;
    scores[j] += term;
  }
  return shown > 0;
}

}  // namespace ait::golden
