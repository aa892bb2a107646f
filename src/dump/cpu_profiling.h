// The text files of --type cpu_profiling, after the run.
//
// The probe appends one line for each report, `[operation]:key:value, …`. Afterwards each file is
// put into the form that the old tools left behind: for each operation its last execute and its
// last setup record.
//
//   LinearOperation_4_0:
//   [execute] totalTime:12, kernelExecuteTime:3, …
//   [setup] totalTime:40, runnerSetupTime:7, …
//   (a blank line)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::dump {

// "" where no line has the form of a report: nothing to do, or done before.
std::string profiling_by_operation(std::string_view lines);

// Rewrites every operation_statistic_*.txt in the folder.
Result<void> rewrite_profiling(const std::string& folder);

}  // namespace ait::dump
