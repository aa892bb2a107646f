// What `dump` and `errcheck` share: a command that runs with a probe in all its processes.
//
//   auto plan = plan_recording({"bash", "run.sh"});   // before anything is made
//   preload_atb_probe(*plan);                          // probes.h
//   auto run = run_recording(*plan, scratch);
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/recorded_run.h"
#include "cli/run_folders.h"
#include "launch/child.h"
#include "launch/machine.h"
#include "launch/program.h"

namespace ait::cli {

struct RecordingPlan {
  std::vector<std::string> command;
  launch::Program program;
  launch::Environment environment;  // of this process, without others' settings
};

// Fails, before anything is made, where the command cannot be run.
Result<RecordingPlan> plan_recording(const std::vector<std::string>& command);

struct RecordingEnd {
  launch::ChildEnd child;
  std::time_t start = 0;
  std::time_t end = 0;
  double seconds = 0;
  RecordedRun run;
};

// Starts the command, waits for it and for processes that outlive it a little, and reads the
// ledgers.
Result<RecordingEnd> run_recording(RecordingPlan& plan, const std::string& scratch,
                                   std::time_t start);

// Every variable by which the launcher tells a probe anything.
void remove_probe_settings(launch::Environment& environment);

// The number by which the probe knows a log level.
std::string log_level_number(const std::string& name);

// "ended with status 1", "was killed by signal 9 (Killed)".
std::string end_text(const launch::ChildEnd& end);

// The likeliest reason why no process of the command called the probe, one sentence.
std::string why_nobody_called(const launch::Program& program, const RecordingEnd& recording,
                              const std::optional<launch::AtbLibrary>& atb);

// A path as it can be typed in a shell.
std::string shell_word(const std::string& text);

// "1.5 MiB"
std::string bytes_text(uint64_t bytes);

// "1 tensor", "2 tensors"
std::string count_text(uint64_t count, const std::string& what);

}  // namespace ait::cli
