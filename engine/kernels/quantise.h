// Rows of fp32 to int8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "atb/types.h"

namespace atb::kernels {

// q = clamp(round(x * factor + offset), -128, 127), halves to even.
void quantise_by(const float* x, size_t count, float factor, float offset, int8_t* q);

// Symmetric with the row's own scale max|x| / 127, which is returned. A row of zeros stays zeros
// with scale 0.
float quantise_row(const float* x, size_t count, int8_t* q);

// The scales that quantise_row leaves for all rows of x: fp32, its shape without the last
// dimension.
TensorDesc row_scales(const TensorDesc& x);

}  // namespace atb::kernels
