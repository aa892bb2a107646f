#include "golden/self_mask.h"

#include <cmath>

namespace ait::golden {
namespace {

using Mask = graph::SelfAttentionMaskType;

// Of a mask that holds the biases of the first columns, from which the others follow.
constexpr size_t kFirstColumns = 128;
constexpr double kMasked = -10000;
// A mask of this size, whatever the sequences' length, stands for all that see what is before them.
constexpr size_t kTriangle = 128;

// Biases that are stored for the first columns only: those of the others are the same, as many rows
// further up.
bool add_columns(const Array& columns, size_t head, size_t row, KeyRange keys, double* scores) {
  const size_t rows = columns.dim(1);
  for (size_t j = keys.first; j < keys.last; ++j) {
    const size_t up = j / kFirstColumns * kFirstColumns;
    scores[j - keys.first] +=
        row >= up ? columns.data[(head * rows + row - up) * kFirstColumns + j % kFirstColumns]
                  : kMasked;
  }
  return true;
}

Error too_small(const Task& task, size_t number, size_t rows, size_t keys, size_t has_rows,
                size_t has_keys) {
  return task.contradiction("sequence " + std::to_string(number) + " needs " +
                            std::to_string(rows) + " rows of a mask for " + std::to_string(keys) +
                            " keys, and the mask has " + std::to_string(has_rows) + " for " +
                            std::to_string(has_keys));
}

void hide_what_follows(size_t position, Sequence& sequence) {
  sequence.visible = [position, keys = sequence.keys.rows](size_t row) {
    return causal_keys(position + row, keys);
  };
}

}  // namespace

bool has_slopes(Mask type) {
  return type == Mask::kAlibiCompress || type == Mask::kAlibiCompressSqrt ||
         type == Mask::kAlibiCompressLeftAlign;
}

Result<SelfMask> SelfMask::of(Task& task, const Kind& kind, size_t heads, size_t sequences) {
  SelfMask mask(kind);
  if (kind.type == Mask::kNorm || kind.type == Mask::kAlibi) {
    const bool norm = kind.type == Mask::kNorm;
    auto tensor =
        MaskTensor::of(task, "mask", sequences, heads,
                       norm ? MaskTensor::First::kSequences : MaskTensor::First::kHeads,
                       norm ? MaskTensor::Style::kFlagsOrTerms : MaskTensor::Style::kTerms);
    if (!tensor) return fail(tensor.error());
    mask.tensor_ = std::move(*tensor);
  }
  if (!has_slopes(kind.type)) return mask;
  const Shape& shape = task.shape("mask");
  if (shape.size() == 3 && shape[2] == kFirstColumns && !task.fractal("mask")) {
    if (static_cast<size_t>(shape[0]) != heads)
      return fail(task.contradiction("mask of shape " + shape_text(shape) + " is not of " +
                                     std::to_string(heads) + " heads"));
    if (auto room = task.make_room(heads * static_cast<size_t>(shape[1]), kFirstColumns); !room)
      return fail(room.error());
    mask.columns_ = task.values("mask");
    return mask;
  }
  mask.slopes_ = task.values("slopes").data;
  if (mask.slopes_.size() != heads)
    return fail(task.contradiction("slopes has " + std::to_string(mask.slopes_.size()) +
                                   " elements for " + std::to_string(heads) + " heads"));
  return mask;
}

Result<void> SelfMask::set(const Task& task, size_t number, size_t position,
                           Sequence& sequence) const {
  switch (kind_.type) {
    case Mask::kUndefined:
      return {};
    case Mask::kNorm:
    case Mask::kAlibi:
      return set_tensor(task, number, position, sequence);
    case Mask::kAlibiCompress:
    case Mask::kAlibiCompressSqrt:
    case Mask::kAlibiCompressLeftAlign:
      return set_slopes(task, number, position, sequence);
    case Mask::kSlidingWindowNorm:
    case Mask::kSlidingWindowCompress:
      sequence.visible = [position, keys = sequence.keys.rows, window = kind_.window](size_t row) {
        return window_keys(position + row, window, keys);
      };
      return {};
    case Mask::kNormCompress:
    case Mask::kCausal:
      break;
  }
  hide_what_follows(position, sequence);
  return {};
}

Result<void> SelfMask::set_tensor(const Task& task, size_t number, size_t position,
                                  Sequence& sequence) const {
  const MaskTensor& tensor = *tensor_;
  const size_t last = position + sequence.queries.rows;
  const size_t keys = sequence.keys.rows;
  if ((tensor.rows() == 1 || last <= tensor.rows()) && keys <= tensor.columns()) {
    sequence.add_mask = [&tensor, number, position](size_t head, size_t row, KeyRange range,
                                                    double* scores) {
      return tensor.add(number, head, position + row, range, scores);
    };
    return {};
  }
  const bool any_length = kind_.type == Mask::kNorm && tensor.rows() == tensor.columns() &&
                          (kind_.triangle || tensor.rows() == kTriangle);
  if (!any_length)
    return fail(too_small(task, number, last, keys, tensor.rows(), tensor.columns()));
  hide_what_follows(position, sequence);
  return {};
}

Result<void> SelfMask::set_slopes(const Task& task, size_t number, size_t position,
                                  Sequence& sequence) const {
  if (columns_) {
    const size_t last = position + sequence.queries.rows;
    const size_t rows = columns_->dim(1);
    if (last > rows)
      return fail(too_small(task, number, last, sequence.keys.rows, rows, kFirstColumns));
    sequence.add_mask = [&columns = *columns_, position](size_t head, size_t row, KeyRange range,
                                                         double* scores) {
      return add_columns(columns, head, position + row, range, scores);
    };
    return {};
  }
  hide_what_follows(position, sequence);
  sequence.add_mask = [this, position](size_t head, size_t row, KeyRange range, double* scores) {
    // They are stored with either sign; what is far away always counts less.
    const double slope = slopes_[head];
    for (size_t j = range.first; j < range.last; ++j) {
      const auto distance = static_cast<double>(position + row - j);
      double bias = slope * static_cast<double>(j);
      if (kind_.type == Mask::kAlibiCompress) bias = -std::abs(slope) * distance;
      if (kind_.type == Mask::kAlibiCompressSqrt) bias = -std::abs(slope) * std::sqrt(distance);
      scores[j - range.first] += bias;
    }
    return true;
  };
  return {};
}

}  // namespace ait::golden
