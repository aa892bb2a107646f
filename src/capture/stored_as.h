// Whether a torch recording kept its tensors in a coarser type than they were computed in
// (register_hook's store_as): what is rounding of the recording is no fault of the model.
#pragma once

#include "capture/recording.h"

namespace ait::capture {

// Adds a sentence to `problems`, which whoever compares the run is shown.
void note_stored_as(Recording& recording);

}  // namespace ait::capture
