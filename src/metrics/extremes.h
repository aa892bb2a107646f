// The smallest and the largest value of a tensor, as numpy gives them and in a type of its own:
// what is kept of a dump that was converted to statistics.
#pragma once

#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace ait::metrics {

struct Extremes {
  // numpy's type of the values: what it has no name for (bfloat16, 8-bit floats) counts as float32.
  DType dtype = DType::kFloat64;
  // Wide enough for every value of every type, 64-bit integers included.
  long double minimum = 0;
  long double maximum = 0;
};

// NaN where any element is NaN and where there is none; the latter makes integers float64. Reads the
// tensor in one go, a block at a time. kUnsupported for complex and packed types, which have no
// order.
Result<Extremes> extremes_of(const TensorView& view);

// The type that numpy.array makes of rows of these types, in their order; float64 for none.
DType common_type(const std::vector<Extremes>& rows);

// [[minimum, maximum], …] as such an array; of shape [0] where there are no rows.
Result<Tensor> array_of(const std::vector<Extremes>& rows);
// [minimum, maximum]
Result<Tensor> array_of(const Extremes& row);

}  // namespace ait::metrics
