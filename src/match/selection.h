// Whether a tensor is a part of another one: some of its rows, as the tokens that an expert is given,
// or some of its columns, as one of the projections that were computed in one go.
//
//   if (find_selection(expert_input, layer_input) == Selection::kRows) …
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace ait::match {

enum class Selection : uint8_t {
  kNone,
  kRows,     // whole rows, in whatever order
  kColumns,  // a stretch of each row, which may be divided into heads
};

// By a few of the part's rows, which have to be there to the last bit.
Selection find_selection(const Tensor& part, const Tensor& whole);

}  // namespace ait::match
