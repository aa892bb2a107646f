// Who corresponds to whom in two compiled graphs, by the names that compilers keep.
//
//     my side                           golden                            by
//     Add_2                             Add_2                             the name
//     Add_2Cast_9, fused                Add_2, Cast_9                     what it was made of
//     Add_2, which computes add_1       add_1 of the FX graph             what it computes
//     trans_TransData_1, put in         nothing                           itself: in against out
//
// Outputs and inputs are both compared: an input shows what the compiler did to a tensor on its way.
#pragma once

#include <cstddef>
#include <vector>

#include "capture/recording.h"
#include "match/plan.h"

namespace ait::match {

// One of golden's graphs and those of mine that do its work, indices into Recording::graphs.
struct GraphPair {
  uint32_t golden = 0;
  std::vector<uint32_t> actual;  // more than one where a compiler has cut it
};

struct GraphPlan {
  std::vector<PlannedProgram> programs;  // one for each of `actual`
  size_t golden_inputs_left = 0;         // inputs of operations that are paired, without a partner
  size_t actual_inputs_left = 0;
  size_t by_results = 0;  // operations that were paired by what they compute
};

GraphPlan plan_graphs(const capture::Recording& golden, const capture::Recording& actual,
                      const GraphPair& pair);

// A graph that has no counterpart, or rounds of it that have none.
PlannedProgram plan_lonely_graph(const capture::Recording& recording, uint32_t graph,
                                 bool is_golden);

}  // namespace ait::match
