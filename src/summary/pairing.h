// What automatic pairing found out, in words: what was paired and what not, and which tokens belong
// together.
#pragma once

#include <string>

#include "match/automatic.h"
#include "match/pair_paths.h"
#include "report/json.h"

namespace ait::summary {

// A line for each side that may lack something.
std::string completeness_text(const match::PairList& list);
report::JsonObject completeness_json(const match::PairList& list);

std::string coverage_text(const match::AutomaticPairs& found, bool coloured);
report::JsonObject coverage_json(const match::AutomaticPairs& found);

}  // namespace ait::summary
