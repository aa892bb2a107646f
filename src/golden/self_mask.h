// The masks of SelfAttentionOperation: tensors that are added, and what follows from positions.
#pragma once

#include <optional>
#include <vector>

#include "golden/attention_mask.h"

namespace ait::golden {

// Whether each head counts distant keys less by a slope of its own.
bool has_slopes(graph::SelfAttentionMaskType type);

class SelfMask {
 public:
  struct Kind {
    graph::SelfAttentionMaskType type;
    bool triangle;  // a mask that is too small stands for all that hide what follows
    size_t window;
  };

  // Of the inputs "mask" and "slopes".
  static Result<SelfMask> of(Task& task, const Kind& kind, size_t heads, size_t sequences);

  // Sets the mask of one sequence, whose first query has the row `position` of the mask. The mask
  // must outlive the sequence.
  Result<void> set(const Task& task, size_t number, size_t position, Sequence& sequence) const;

 private:
  explicit SelfMask(const Kind& kind) : kind_(kind) {}

  Result<void> set_tensor(const Task& task, size_t number, size_t position,
                          Sequence& sequence) const;
  Result<void> set_slopes(const Task& task, size_t number, size_t position,
                          Sequence& sequence) const;

  Kind kind_;
  std::optional<MaskTensor> tensor_;
  std::vector<double> slopes_;    // of each head
  std::optional<Array> columns_;  // biases of the first columns: [heads, rows, columns]
};

}  // namespace ait::golden
