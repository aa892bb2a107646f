// Plain-loop versions of every metric, written from docs/metrics.md without regard for speed: the
// oracle of the vector kernels. Shares no code with them but the widening of elements.
#pragma once

#include "metrics/compare.h"

namespace ait::metrics {

Comparison reference_compare(const TensorView& golden, const TensorView& actual,
                             const Request& request);
// With every median over all rows and all columns, and columns over all rows that count.
ErrorProfile reference_profile(const TensorView& golden, const TensorView& actual,
                               const std::vector<bool>* padding);
Statistics reference_statistics(const TensorView& tensor);

}  // namespace ait::metrics
