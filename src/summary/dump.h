// What the person at the terminal is told at the end of a dump.
#pragma once

#include <string>

#include "dump/api_dump.h"
#include "dump/outcome.h"

namespace ait::summary {

// The last line is what to type next.
std::string dump_text(const dump::Outcome& outcome);
std::string api_dump_text(const dump::ApiDump& dump);

}  // namespace ait::summary
