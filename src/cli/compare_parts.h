// Comparing in parts, by processes that need not know of each other: the plan, a part of it, and the report of all
// parts. docs/cluster.md shows how job arrays run them.
#pragma once

#include <string_view>

#include "base/error.h"
#include "cli/commands.h"
#include "compare/plan.h"
#include "match/pair_paths.h"

namespace ait::cli {

// "3/16". kUsage otherwise.
Result<compare::PartNumber> parse_part(std::string_view text);

// `path_of`: where a run is spread over nodes, the path of a listed file on its node.
int run_plan(const CompareOptions& options, const match::PairList& list,
             const compare::PathOf& path_of);
int run_part(const CompareOptions& options);
int run_merge(const CompareOptions& options);

}  // namespace ait::cli
