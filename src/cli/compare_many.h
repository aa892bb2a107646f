// Comparing many pairs: the report, the summary, the worst of them.
#pragma once

#include "cli/commands.h"
#include "locate/noise.h"
#include "match/pair_paths.h"

namespace ait::cli {

// `noise` may be null: nothing was measured of it.
int run_compare_many(const CompareOptions& options, const match::PairList& list,
                     const locate::NoiseRun* noise);

// Errors of the run that --noise names, against the same golden.
Result<locate::NoiseRun> measure_noise(const CompareOptions& options);

}  // namespace ait::cli
