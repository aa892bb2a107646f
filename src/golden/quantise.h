// Quantisation to int8 with scales that come from the data, which several operations end with.
#pragma once

#include "golden/array.h"
#include "golden/golden.h"

namespace ait::golden {

// Every row of the last dimension by its own scale: the quantised values, the scales, and with
// `asymmetric` the offsets. `slack` is that of the values that go in, or empty.
std::vector<Output> quantise_rows(const Array& values, const std::vector<double>& slack,
                                  bool asymmetric);

// clamp(value, -128, 127) before rounding, for an output of type int8: half a step and what `slack`
// (in steps) adds are the bound.
Output int8_output(Shape shape, std::vector<double> steps, std::vector<double> slack);

}  // namespace ait::golden
