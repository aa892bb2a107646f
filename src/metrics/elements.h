// Elements of a tensor as doubles, for those who look at a stretch of it rather than measure the
// whole.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/tensor.h"

namespace ait::metrics {

// Elements [first, first + count) in row-major order; (u)int64 beyond 2^53 round to nearest. `out`
// has room for these. Of real types only.
void read_elements(const TensorView& view, size_t first, size_t count, double* out);

// The same; `out` holds at least these, and keeps its memory from one call to the next.
void read_elements(const TensorView& view, size_t first, size_t count, std::vector<double>& out);

}  // namespace ait::metrics
