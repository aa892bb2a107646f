// What automatic pairing found out, in words: what was paired and what not, and which tokens belong
// together.
#pragma once

#include <string>

#include "match/automatic.h"
#include "report/json.h"

namespace ait::cli {

std::string coverage_text(const match::AutomaticPairs& found, bool coloured);
report::JsonObject coverage_json(const match::AutomaticPairs& found);

}  // namespace ait::cli
