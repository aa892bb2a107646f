// The html page of a comparison, as the commands write it.
#pragma once

#include <string>

#include "base/error.h"
#include "page/comparison.h"

namespace ait::cli {

// The page of a store, with the version and command line of this process.
Result<page::Page> page_of_store(const compare::RowStore& store, page::ComparisonFacts facts);

// "Page: out/report.html (open it in a browser)"
std::string page_line(const std::string& path);

}  // namespace ait::cli
