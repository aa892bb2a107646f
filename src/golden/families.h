// Every golden, by family. What each computes stands in its file; registry.cpp says which operation
// it belongs to.
#pragma once

#include "golden/task.h"

namespace ait::golden {

// activation.cpp
Result<Expected> activation(Task& task);
// elewise.cpp
Result<Expected> elewise(Task& task);
// move.cpp
Result<Expected> gather(Task& task);
Result<Expected> concat(Task& task);
Result<Expected> split(Task& task);
Result<Expected> slice(Task& task);
Result<Expected> transpose(Task& task);
Result<Expected> as_strided(Task& task);
Result<Expected> repeat(Task& task);
Result<Expected> set_value(Task& task);
Result<Expected> fill(Task& task);
Result<Expected> where(Task& task);
Result<Expected> pad(Task& task);
Result<Expected> unpad(Task& task);
Result<Expected> transdata(Task& task);
// norm.cpp
Result<Expected> rms_norm(Task& task);
Result<Expected> layer_norm(Task& task);
// rope.cpp
Result<Expected> rope(Task& task);
Result<Expected> rope_q_concat(Task& task);
Result<Expected> dynamic_ntk(Task& task);
// self_attention.cpp
Result<Expected> self_attention(Task& task);

}  // namespace ait::golden
