// What `dump` and `errcheck` share: a command that runs with a probe in all its processes.
//
//   auto plan = plan_recording({"bash", "run.sh"});   // before anything is made
//   preload_atb_probe(*plan);                          // probes.h
//   auto run = run_recording(*plan, scratch);
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "dump/recorded_run.h"
#include "launch/child.h"
#include "launch/environment.h"
#include "launch/program.h"

namespace ait::dump {

struct RecordingPlan {
  std::vector<std::string> command;
  launch::Program program;
  launch::Environment environment;  // of this process, without others' settings
  launch::Output output = launch::Output::kInherited;
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

}  // namespace ait::dump
