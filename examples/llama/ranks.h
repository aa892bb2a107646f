// The same work in several processes, one for each rank of a tensor-parallel group.
#pragma once

#include <cstddef>
#include <functional>

#include "atb/communicator.h"

namespace ait_llama {

// Calls `work` once in each rank: in this process as rank 0, in forked ones as the others, whose
// standard output goes nowhere. With one rank the communicator is null. Returns rank 0's status, or
// the first other that is not 0. Must be called before any thread is started.
int run_ranks(size_t ranks, const std::function<int(size_t rank, atb::Communicator*)>& work);

}  // namespace ait_llama
