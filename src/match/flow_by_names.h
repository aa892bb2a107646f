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

// Whether names lead from one of these top-level operations to another. The topology of a mere layer
// has names of its own for what goes into the layer.
bool are_names_shared(const capture::Recording& recording, const std::vector<uint32_t>& tops);

// Fills in what these operations, in the order in which they begin, read and write. Tensors that
// nobody recorded are added at the end of `made`. Where names are not shared, nothing is known of
// what is made of things that go into a top-level operation alone.
void follow_names(const capture::Recording& recording, const std::vector<uint32_t>& operations,
                  bool are_shared, std::vector<Made>& made);

}  // namespace ait::match
