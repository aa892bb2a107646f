// Whether a tensor is a part of another one: some of its rows, as the tokens that an expert is given,
// or some of its columns, as one of the projections that were computed in one go.
//
//   Whole whole(layer_input);
//   for (const Tensor& each : expert_inputs)
//     if (whole.find(each) == Selection::kRows) …
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "tensor/tensor.h"

namespace ait::match {

enum class Selection : uint8_t {
  kNone,
  kRows,     // whole rows, in whatever order
  kColumns,  // a stretch of each row, which may be divided into heads
};

// Whether a part of so many elements and columns can be one of a tensor, by the numbers alone.
bool may_be_part(size_t elements, size_t columns, size_t whole_elements, size_t whole_columns);

class Whole {
 public:
  explicit Whole(Tensor tensor) : tensor_(std::move(tensor)) {}

  // By a few of the part's rows, which have to be there to the last bit.
  Selection find(const Tensor& part);

 private:
  Tensor tensor_;
  std::unordered_multimap<uint64_t, size_t> rows_;  // by what they begin with; empty: not looked at
};

}  // namespace ait::match
