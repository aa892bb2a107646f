// A closer look at one pair of tensors: how the values are spread, where the error sits, and which
// elements are farthest off.
#pragma once

#include <optional>

#include "report/json.h"
#include "tensor/tensor.h"

namespace ait::page {

// {"elements", "histogram", "map", "worst"}, as docs/report.md has it; nothing where the two hold
// different numbers of elements, none at all, or elements that are not real numbers.
std::optional<report::JsonObject> detail_of(const Tensor& golden, const Tensor& actual);

}  // namespace ait::page
