// Comparing many pairs: the report, the summary, the worst of them.
#pragma once

#include "cli/commands.h"
#include "match/pair_paths.h"

namespace ait::cli {

int run_compare_many(const CompareOptions& options, const match::PairList& list);

}  // namespace ait::cli
