// Records what a command computes: all that `ait llm dump` does except talking about it.
//
//   Options options;
//   options.command = {"bash", "run.sh"};
//   auto plan = dump::plan(options);                         // kNotFound: the program, the probe
//   auto outcome = dump::run(options, std::move(*plan));     // kUnwritable: the output folder
//   if (!outcome->complete()) …                              // outcome->problems says why
//
// A new kind of recording is a pair of functions in probes.h and a value of Probe.
#pragma once

#include "base/error.h"
#include "dump/options.h"
#include "dump/outcome.h"
#include "dump/recording.h"

namespace ait::dump {

// Finds the program and the probe. Nothing is made or run yet, except that a Python may be asked
// where the torch recorder is.
Result<RecordingPlan> plan(const Options& options);

// Runs the command, waits for its end, brings what it has written into its final form, judges it
// and writes the manifest. After a dry run nothing stays on disk. Signals that end this process by
// default are the caller's business; see launch/child.h for those that arrive meanwhile.
Result<Outcome> run(const Options& options, RecordingPlan plan);

}  // namespace ait::dump
