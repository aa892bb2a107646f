// Masks of attention: tensors that are added to scores, and keys that positions alone hide.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "golden/attention.h"

namespace ait::golden {

// The keys up to a position, and of these the last `window`.
KeyRange causal_keys(size_t position, size_t keys);
KeyRange window_keys(size_t position, size_t window, size_t keys);

// A tensor of masks, of which there is one for all sequences or heads or one for each. It is read
// when it is asked for, so it may be large.
class MaskTensor {
 public:
  // What the first dimension of a tensor with three counts.
  enum class First : uint8_t { kSequences, kHeads };
  // Zeros and ones are flags, which hide; anything else is added as it is.
  enum class Style : uint8_t { kFlagsOrTerms, kTerms };

  // Reads the shape of an input: [rows, columns], [sequences or heads, rows, columns],
  // [sequences, heads, rows, columns], or FRACTAL_NZ of these. Fails where it is none of them.
  static Result<MaskTensor> of(Task& task, std::string_view name, size_t sequences, size_t heads,
                               First first, Style style);

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }

  // Adds the mask of these keys to their scores; false where it hides all of them. One row stands
  // for all. The caller has checked row and keys against rows() and columns().
  bool add(size_t sequence, size_t head, size_t row, KeyRange keys, double* scores) const;

 private:
  MaskTensor(const Task& task, std::string_view name) : task_(&task), name_(name) {}
  Result<void> read(Task& task, bool fractal);
  bool holds_flags() const;

  const Task* task_;
  std::string name_;
  size_t sequences_ = 1;
  size_t heads_ = 1;
  size_t rows_ = 0;
  size_t columns_ = 0;
  double factor_ = 1;
  std::vector<double> values_;  // all, row-major, where it is small or was in FRACTAL_NZ
};

}  // namespace ait::golden
