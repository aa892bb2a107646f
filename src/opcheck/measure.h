// An output of an operation held against its golden: by the old tools' standard, and by what
// rounding explains.
#pragma once

#include "golden/golden.h"
#include "opcheck/row.h"
#include "tensor/tensor.h"

namespace ait::opcheck {

// By the type of the output; nothing for types that no standard speaks of.
std::optional<Standard> standard_of(DType dtype);

// Fills in what a row says of an output that was computed. `actual` has the golden's shape. Of an
// output of which only a part is written, that part is measured; what is beside it must be as in
// `before`, the same tensor before the operation, where that was recorded.
void measure(const golden::Output& expected, const TensorView& actual,
             const std::optional<Tensor>& before, const Metrics& metrics, CheckRow& row);

}  // namespace ait::opcheck
