// What came of a whole check: how many operations are how good, the worst of them, and whether that
// is what somebody wants to be told by an exit status.
//
//   Summary summary;
//   check_cases(cases, options, stop, [&](auto&& rows) { summary.add(rows); });
//   if (is_met(FailOn::kBound, summary)) return 1;
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "opcheck/row.h"

namespace ait::opcheck {

struct Summary {
  static constexpr size_t kWorstRows = 10;

  size_t operations = 0;
  size_t outputs = 0;                     // that were compared
  size_t outside = 0;                     // of them, beyond what rounding explains
  size_t below = 0;                       // of them, below the standard
  size_t rerun = 0;                       // of them, run again by a library
  size_t saved = 0;                       // operations whose data were saved
  size_t unchecked = 0;                   // rows of which nothing was compared
  std::map<std::string, size_t> reasons;  // why not
  std::vector<CheckRow> worst;            // of those that failed, the worst first

  // The rows of one operation.
  void add(const std::vector<CheckRow>& rows);
};

// The conditions of --fail-on.
enum class FailOn : uint8_t {
  kStandard,   // "failed": an output is below its standard
  kBound,      // "bound": rounding does not explain it
  kUnchecked,  // "unchecked"
};

std::string_view word(FailOn condition);
// kUsage for other words.
Result<std::vector<FailOn>> parse_fail_on(const std::vector<std::string>& words);
bool is_met(FailOn condition, const Summary& summary);

}  // namespace ait::opcheck
