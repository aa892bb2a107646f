// What names of modules do not tell of two torch runs that are paired by them: what is computed
// between modules, and who corresponds to whom among modules of other names.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "match/by_names.h"
#include "match/by_place.h"
#include "match/plan.h"
#include "match/sample.h"
#include "match/segment_match.h"
#include "match/tokens.h"

namespace ait::match {

struct NamedRuns {
  const RunSide& golden;
  const RunSide& actual;
  const PlaceMap& places;
  const std::vector<const Step*>& steps;  // of the two programs, at least one
  std::function<std::pair<Tokens, Tokens>(const Step& step)> tokens_of;
  // Pairs segments of the same structure by data and types: the machinery of runs without names.
  std::function<void(const std::vector<SegmentPair>& segments,
                     const std::vector<const Step*>& steps, const SettledValues& settled,
                     PlannedProgram& out)>
      plan_segments;
};

// Adds to what plan_by_place made of names.
void plan_beside_names(const NamedRuns& runs, PlannedProgram& out);

}  // namespace ait::match
