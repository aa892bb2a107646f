// Runs that other tools recorded, as a torch dump of ours (docs/torch_dump.md).
//
//   auto counts = convert_run("msprobe_dump", "out", stop, warn);  // out/ait_dump/torch_tensors/…
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/error.h"

namespace ait::convert {

struct RunCounts {
  size_t tensors = 0;     // that were written with their data
  size_t statistics = 0;  // of which only statistics, or type and shape, were there
  size_t left = 0;        // that could not be read or written; each was warned of
  std::string folder;     // the dump
};

// Any run of named operations, and Polygraphy's results. kUsage where the path is none, or is a
// torch dump of ours already. Ends after the current tensor when `stop` becomes true.
Result<RunCounts> convert_run(const std::string& from, const std::string& to,
                              const std::atomic<bool>& stop,
                              const std::function<void(const Error&)>& warn);

}  // namespace ait::convert
