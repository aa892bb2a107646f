// Pairs operations of two runs of the same model by where they stand: the same name of a torch
// module, the same ids in an acceleration library's graph.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/recording.h"
#include "match/plan.h"
#include "match/program.h"

namespace ait::match {

struct PlaceMap {
  std::vector<uint32_t> golden_of;  // [my operation]; kNoOperation where there is none
  std::string method;
  std::vector<std::pair<size_t, size_t>>
      ranks;  // golden's and mine that are the same: same_ranks.h
};

// Nothing where the runs are not of the same graph, or are divided among different numbers of
// ranks. Of a run on several ranks some may be missing.
std::optional<PlaceMap> find_places(const capture::Recording& golden,
                                    const capture::Recording& actual);

PlannedProgram plan_by_place(const capture::Recording& golden, const Program& golden_program,
                             const capture::Recording& actual, const Program& actual_program,
                             const PlaceMap& places, const std::pair<size_t, size_t>& programs);

}  // namespace ait::match
