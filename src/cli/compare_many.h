// Comparing many pairs: the report, the summary, the worst of them.
#pragma once

#include "cli/commands.h"
#include "cli/pair_list.h"

namespace ait::cli {

int run_compare_many(const CompareOptions& options, const PairList& list);

}  // namespace ait::cli
