// From the order in which a device stores a tensor to the order that its logical shape means.
//
//   const auto matrix = reorder(stored, Order::kFractalNz, {2, 3}, 0);  // stored: [1, 1, 16, 16]
//   if (!matrix) return fail(matrix.error());                           // no room for a copy
//
// Devices cut matrices and channels into blocks of C0 (8, 16 or 32) and fill the last block up. Of
// every order, the place of an element is a sum of one term for each of its logical indices, and a
// term is `index / inner * outer_stride + index % inner * inner_stride`.
#pragma once

#include "base/error.h"
#include "formats/ge_types.h"
#include "tensor/tensor.h"

namespace ait::formats::ge_dump {

// `stored` lies row-major in its stored shape, and stays in that where the logical one is empty or
// does not fit. What strides can express is not copied. `groups` are of a convolution's weight.
Result<Tensor> reorder(const Tensor& stored, Order order, const Shape& logical, int64_t groups);

}  // namespace ait::formats::ge_dump
