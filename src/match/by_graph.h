// Pairs two runs of compiled graphs: GE against FX, GE against GE, FX against FX.
//
//   if (can_pair_by_graph(*golden, *actual)) return pair_by_graph(golden, actual, options);
//
// Ranks are paired by number, graphs by number or else in their order, executions by token, and
// operations as graph_plan.h says. What only one side has stands alone.
#pragma once

#include "base/error.h"
#include "match/automatic.h"

namespace ait::match {

// Whether both are such runs, and share names.
bool can_pair_by_graph(const capture::Recording& golden, const capture::Recording& actual);

// kUsage where no rank or no round of one side has a counterpart.
Result<AutomaticPairs> pair_by_graph(SharedRecording golden, SharedRecording actual,
                                     const AutomaticOptions& options);

}  // namespace ait::match
