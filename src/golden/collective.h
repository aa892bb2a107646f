// Ranks and their inputs, for the operations that several ranks do together.
#pragma once

#include "golden/task.h"

namespace ait::golden {

struct Group {
  size_t rank = 0;  // this one
  size_t size = 1;
};

// What `rank` and `rankSize` say.
Result<Group> read_group(Task& task);

// Task::takes() of the inputs of one rank. A group of one needs no inputs of other ranks.
Result<void> take(Task& task, const Group& group, size_t rank,
                  const std::vector<std::string_view>& names);

// The input x of every rank, all of one type and shape. Afterwards the task has the names of the
// inputs of the last rank.
Result<std::vector<Array>> x_of_all(Task& task, const Group& group,
                                    const std::vector<std::string_view>& names);

}  // namespace ait::golden
