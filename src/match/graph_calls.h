// A run of compiled graphs as a run of a model: its rounds become calls, as torch counts them.
//
//     executions   graph_1/0   graph_2/0   graph_2/1        a prompt and two new words
//     calls        0           1           2
//     executions   graph_1/0 graph_2/0   graph_3/0 graph_4/0    the same with a break in the graph
//     calls        0                     1
#pragma once

#include <cstddef>

#include "capture/recording.h"

namespace ait::match {

// Counts calls in place of each graph's own executions. Where the other run has `other_rounds` rounds
// and there are a multiple of that of executions, a call is so many of these; else each is one. Does
// nothing to runs that count calls already.
void count_calls(capture::Recording& recording, size_t other_rounds);

}  // namespace ait::match
