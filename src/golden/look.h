// Elements of an input in another order than they are stored in.
#pragma once

#include "golden/array.h"
#include "golden/task.h"

namespace ait::golden {

// Element [i, j, …] of a look is the one at offset + i * strides[0] + j * strides[1] + ….
struct Look {
  Shape shape;
  Strides strides;
  int64_t offset = 0;
};

// What a look sees, which must not leave the tensor. Fails where that is too much.
Result<Array> read_look(Task& task, const Tensor& tensor, const Look& look);

// The same of an input as if it had one dimension. Fails where the look leaves it.
Result<Array> read_strided(Task& task, std::string_view name, const Look& look);

}  // namespace ait::golden
