// Whether a capture is complete, and if not, why.
#pragma once

#include <optional>
#include <string>

#include "dump/outcome.h"
#include "launch/machine.h"
#include "launch/program.h"

namespace ait::dump {

// Fills `problems` and `notes` from the rest. `atb` is only asked for where no process has called.
void judge(Outcome& outcome, const launch::Program& program,
           std::optional<launch::AtbLibrary> (*atb)() = &launch::find_atb);

// The likeliest reason why no process of the command called the probe, one sentence.
std::string why_nobody_called(const launch::Program& program, const RecordingEnd& recording,
                              const std::optional<launch::AtbLibrary>& atb);

}  // namespace ait::dump
