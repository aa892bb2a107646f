// Single elements of a tensor, to look at.
#pragma once

#include <string>
#include <vector>

#include "report/cell.h"
#include "tensor/tensor.h"

namespace ait::summary {

// The first `count` elements in row-major order: flags, integers and numbers by value, complex ones
// as "1.0+2.0j", packed 4-bit ones as their byte in hexadecimal.
std::vector<report::Cell> first_elements(const TensorView& view, size_t count);

// The one at this flat row-major index.
report::Cell element_at(const TensorView& view, size_t index);

// As a person reads it: all digits that the type holds.
std::string element_text(DType dtype, const report::Cell& element);

// "[0, 3, 17]" for the flat row-major index.
std::string coordinates_text(std::span<const int64_t> shape, size_t flat_index);

}  // namespace ait::summary
