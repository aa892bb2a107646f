// Every golden, by family. What each computes stands in its file; registry.cpp says which operation
// it belongs to.
#pragma once

#include "golden/task.h"

namespace ait::golden {

// activation.cpp
Result<Expected> activation(Task& task);
// elewise.cpp
Result<Expected> elewise(Task& task);
// linear.cpp
Result<Expected> linear(Task& task);  // LinearQuantOperation, too
std::vector<size_t> changed_by_linear(graph::AtbParam& param);
Result<Expected> linear_sparse(Task& task);
Result<Expected> matmul(Task& task);
// norm.cpp
Result<Expected> rms_norm(Task& task);
Result<Expected> layer_norm(Task& task);

}  // namespace ait::golden
