// The manifests of recordings: how a run was made, and what was not recorded.
#pragma once

#include <string>

#include "report/json.h"

namespace ait::page {

// {"side", "path", "text"} of each manifest.json in the folders that a file of a recording lies in;
// the text is as it was written.
void add_manifests(const std::string& side, const std::string& path, report::JsonArray& out);

}  // namespace ait::page
