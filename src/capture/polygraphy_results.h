// What Polygraphy saved of its runners, in one file (formats/polygraphy_json.h): each output by name,
// its iterations as rounds. Where a file holds several runners, the name begins with the runner's.
#pragma once

#include <string>

#include "capture/capture.h"
#include "capture/recording.h"

namespace ait::capture {

bool is_polygraphy_results(const std::string& path);
Result<Capture> read_polygraphy_results(const std::string& path);

// The same as a run of operations, each with one output: "root.logits". Runs of other tools are
// compared with that.
Result<Recording> read_polygraphy_run(const std::string& path);

}  // namespace ait::capture
