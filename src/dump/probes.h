// The ways to record a command: what each puts into its environment.
#pragma once

#include <ctime>
#include <string>

#include "base/error.h"
#include "dump/options.h"
#include "dump/recording.h"

namespace ait::dump {

// The acceleration library, by a preloaded library.
Result<void> preload_atb_probe(RecordingPlan& plan);
void ask_atb_probe(const Options& options, const std::string& output, std::time_t start,
                   launch::Environment& environment);

// torch, by a start-up module that stands first on the Python path. It belongs to the package
// ait_llm, which is looked for in the Python that the command names, in $AIT_PYTHON or python3, and
// beside this program.
Result<void> prepend_torch_startup(RecordingPlan& plan);
void ask_fx_probe(const Options& options, const std::string& output,
                  launch::Environment& environment);
void ask_torch_probe(const Options& options, const std::string& output,
                     launch::Environment& environment);

// Asks libraries to compute the same every time, where `options` has a seed.
void ask_for_determinism(const Options& options, launch::Environment& environment);

}  // namespace ait::dump
