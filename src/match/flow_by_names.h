// The flow of a run whose topology names tensors: an operation reads what was last written under a
// name, whether it was recorded or not.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/recording.h"
#include "match/flow.h"

namespace ait::match {

// Whether a topology says what an operation reads and writes.
bool has_names(const capture::Operation& operation);

// Fills in what these operations, in the order in which they begin, read and write. Tensors that
// nobody recorded are added at the end of `made`.
void follow_names(const capture::Recording& recording, const std::vector<uint32_t>& operations,
                  std::vector<Made>& made);

}  // namespace ait::match
