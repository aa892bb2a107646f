// Which rows of a report a row comes from: the flow of my side's tensors (flow.h) in terms of planned
// pairs. A tensor that no row is about is passed over, to what it comes from itself.
#pragma once

#include <cstdint>
#include <vector>

#include "match/flow.h"
#include "match/plan.h"

namespace ait::match {

// Where the tensor of a planned pair comes from, whatever the round.
struct PlannedOrigin {
  bool is_known = false;
  bool is_copy = false;
  bool is_collective = false;  // ranks exchange on the way: it comes from the rows of all of them
  capture::OpKind kind = capture::OpKind::kUnknown;
  uint32_t operation = capture::kNoOperation;
  std::vector<uint32_t> sources;  // pairs, ascending
  std::vector<uint32_t> passed;   // operations, ascending
};

// Of each pair of a program, whose pairs are in their final order.
std::vector<PlannedOrigin> plan_origins(const capture::Recording& actual, const Flow& flow,
                                        const std::vector<PlannedPair>& pairs);

}  // namespace ait::match
