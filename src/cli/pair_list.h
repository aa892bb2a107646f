// What `ait llm compare` is to compare, from the two paths it was given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "match/automatic.h"
#include "match/pair.h"

namespace ait::cli {

struct PairList {
  match::Pairs pairs;
  std::string what;         // "2 folders, by file name"
  std::string report_name;  // of the csv
  std::vector<Error> problems;
  // What was found out of dumps: coverage, tokens. `pairs` of it are empty.
  std::optional<match::AutomaticPairs> automatic;
};

// In this order: two single tensors (nothing is returned: they need no list), a manual mapping, two
// dumps of torch or of the acceleration library, two checkpoints, two folders. kUsage where the
// paths fit none of these.
Result<std::optional<PairList>> list_pairs(const CompareOptions& options);

// "ait_cmp_report_20250102030405.csv", local time.
std::string timed_report_name();

}  // namespace ait::cli
