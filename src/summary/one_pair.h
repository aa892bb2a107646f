// What the comparison of a single pair comes to: its metrics, both sides, and where they differ.
//
//   const PairResult result = measure_pair(golden, actual, options);
//   print(pair_text(result, golden, actual, extended, coloured));
#pragma once

#include <optional>
#include <string>

#include "compare/measure.h"
#include "compare/non_finite.h"
#include "report/json.h"

namespace ait::summary {

struct PairResult {
  compare::Row row;
  std::optional<compare::NonFiniteDifference> broken;  // NaN or infinite on one side only
};

PairResult measure_pair(const compare::Content& golden, const compare::Content& actual,
                        const compare::Options& options);

// The old tools' only output for a single pair, which scripts may look for: a Python dict.
std::string old_result_line(const compare::Row& row);

// Tables and sentences, each with its line end.
std::string pair_text(const PairResult& result, const compare::Content& golden,
                      const compare::Content& actual, bool extended, bool coloured);

// How many values are NaN or infinite on one side only, and the first of them; null for none.
report::Json broken_json(const PairResult& result);

}  // namespace ait::summary
