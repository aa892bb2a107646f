// Asking another program a question.
//
//   auto answer = output_of({"python3", "-c", "print(1)"}, std::chrono::seconds(10));
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::launch {

// What the command writes to its standard output (the first 64 KiB). It is looked up on PATH, gets
// no input, and its messages are dropped. Fails when it cannot be started, ends with a status other
// than 0, or takes longer than the limit, in which case it and its children are killed.
Result<std::string> output_of(const std::vector<std::string>& command,
                              std::chrono::milliseconds limit);

}  // namespace ait::launch
