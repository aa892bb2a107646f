// Whole numbers in tensors that say a place in another one: checked before anybody uses them.
#pragma once

#include <vector>

#include "golden/task.h"

namespace ait::golden {

// Every number of an input, each from 0 to `limit` - 1.
Result<std::vector<size_t>> read_indices(const Task& task, std::string_view name, size_t limit);

// Ends of parts that follow each other: none falls, and the last is at most `limit`.
Result<std::vector<size_t>> read_ends(const Task& task, std::string_view name, size_t limit);

}  // namespace ait::golden
