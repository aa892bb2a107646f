// Pairs as a person named them: the entries of a manual mapping, see capture/manual_mapping.h.
#pragma once

#include <vector>

#include "capture/manual_mapping.h"
#include "match/pair.h"

namespace ait::match {

std::vector<Pair> pair_by_metadata(const capture::ManualMapping& mapping);

}  // namespace ait::match
