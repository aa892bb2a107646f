// Where a comparison goes wrong, in words and as JSON: what locate found.
//
//   print(findings_text(locator.findings(), differing, coloured));
#pragma once

#include <string>
#include <vector>

#include "locate/locate.h"
#include "report/json.h"

namespace ait::summary {

// The findings, the most important first; a sentence where there are none. Empty where nothing
// differs: `differing` is how many rows do.
std::string findings_text(const std::vector<locate::Finding>& findings, size_t differing,
                          bool explain);
report::JsonArray findings_json(const std::vector<locate::Finding>& findings);

// The data_id of the first of them, or nothing.
report::Cell jump_json(const std::vector<locate::Finding>& findings);

}  // namespace ait::summary
