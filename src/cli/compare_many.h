// Comparing many pairs: the report, the summary, the worst of them.
#pragma once

#include <atomic>
#include <functional>

#include "cli/commands.h"
#include "locate/noise.h"
#include "match/pair_paths.h"

namespace ait::cli {

// Rows of the pairs of a list, in order.
using EmitRow = std::function<void(compare::Row&& row, uint64_t bytes)>;
using EachRow = std::function<Result<void>(const std::atomic<bool>& stop, const EmitRow& emit)>;

// What a run has beside its pairs.
struct RowsFrom {
  const locate::NoiseRun* noise = nullptr;  // null: nothing was measured of it
  EachRow each = nullptr;                   // where the rows are measured already
  bool is_partial = false;                  // some of these only say that they are missing
};

int run_compare_many(const CompareOptions& options, const match::PairList& list,
                     const RowsFrom& from);

// What is wrong with the runs, on stderr.
void log_problems(const std::vector<Error>& problems);

// Errors of the run that --noise names, against the same golden.
Result<locate::NoiseRun> measure_noise(const CompareOptions& options);

}  // namespace ait::cli
