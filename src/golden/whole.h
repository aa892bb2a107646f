// Indices, lengths and slots that come in tensors: checked before anything is read by them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "golden/task.h"

namespace ait::golden {

// The elements of an input of an integer type; none where it is missing. Fails for another type and
// for numbers that a double does not hold.
Result<std::vector<int64_t>> whole_numbers(const Task& task, std::string_view name);

// The same where each lies in [0, end).
Result<std::vector<size_t>> indices(const Task& task, std::string_view name, size_t end);

// The same of ends of parts that follow each other: none falls, and the last is at most `limit`.
Result<std::vector<size_t>> ends(const Task& task, std::string_view name, size_t limit);

// The same of lengths, none of which is negative.
Result<std::vector<size_t>> lengths(const Task& task, std::string_view name);

// The same where their sum must not pass `most`, a number of `what`, nor where `exactly` stay below
// it.
Result<std::vector<size_t>> lengths(const Task& task, std::string_view name, size_t most,
                                    std::string_view what, bool exactly);

// A dimension that may count from the back, or a failure that names the key it came from.
Result<size_t> axis_of(const Task& task, std::string_view key, int64_t axis, size_t rank);

}  // namespace ait::golden
