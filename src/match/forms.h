// The forms in which a golden value and one of my side's can be the same: whole against whole, or
// one as a stretch of columns of the other.
//
//     golden                my side                         form
//     q_proj, 64 columns    two ranks, 32 columns each      whole, my shards side by side
//     o_proj, 64 columns    two ranks, 64 columns each      whole, my shards added up
//     k_proj, 32 columns    a fused projection, 128         part, columns 64 to 95 of mine
#pragma once

#include <optional>

#include "match/pair.h"
#include "match/readings.h"
#include "match/sample.h"

namespace ait::match {

struct Form {
  Transform golden;
  Transform actual;
  RankUse golden_ranks = RankUse::kOne;
  RankUse actual_ranks = RankUse::kOne;
  Fit fit = Fit::kNone;
  Distance distance;

  bool same_way(const Form& other) const {
    return golden == other.golden && actual == other.actual && golden_ranks == other.golden_ranks &&
           actual_ranks == other.actual_ranks;
  }
};

// The nearest of all forms of tensor against tensor, however far apart they are; nothing where no
// two readings have the same number of columns.
std::optional<Form> whole_form(const Readings& golden, const Readings& actual);

// The nearest of all forms in which the narrow one is columns of the wide one, of those that agree
// well. The narrow side stays as it is, columns are taken of the wide one.
std::optional<Form> part_form(const Readings& golden, const Readings& actual);

}  // namespace ait::match
