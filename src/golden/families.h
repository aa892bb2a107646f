// Every golden, by family. What each computes stands in its file; registry.cpp says which operation
// it belongs to.
#pragma once

#include "golden/task.h"

namespace ait::golden {

// activation.cpp
Result<Expected> activation(Task& task);
// elewise.cpp
Result<Expected> elewise(Task& task);
// norm.cpp
Result<Expected> rms_norm(Task& task);
Result<Expected> layer_norm(Task& task);
// rope.cpp
Result<Expected> rope(Task& task);
Result<Expected> rope_q_concat(Task& task);
Result<Expected> dynamic_ntk(Task& task);

}  // namespace ait::golden
