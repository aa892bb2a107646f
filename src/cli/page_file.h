// The html page of a comparison, as the commands write it.
#pragma once

#include <string>

#include "base/error.h"
#include "match/pair_paths.h"
#include "page/comparison.h"

namespace ait::cli {

// The version and the command line of this process.
void add_origin(page::ComparisonFacts& facts);

// What a store of rows keeps of the comparison as a whole: its command and how its runs were paired.
std::string comparison_note(const match::PairList& list, const std::string& noise);

// "Page: out/report.html (open it in a browser)"
std::string page_line(const std::string& path);

}  // namespace ait::cli
