// Pages of other results than comparisons: the csv of a check of operators or of torch's functions,
// the manifest of a dump, the operators that overflowed.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "page/page.h"

namespace ait::page {

// What a file is, by its content; nothing where it is no result that a page is made of.
//
//   "opcheck", "api_check", "api_details", "api_overflow", "dump", "errcheck"
std::optional<std::string> result_kind(const std::string& path);

// Its page. kCorrupt, kUnsupported where it cannot be read, or is no result of ait.
Result<Page> result_page(const std::string& path, const std::string& version);

// "2025-01-02T03:04:05Z"
std::string now_text();

}  // namespace ait::page
