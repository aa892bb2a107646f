// Runs a command and collects which of its operators overflow: all that `ait llm errcheck` does
// except talking about it.
//
//   auto plan = plan_overflow_check(options);
//   auto check = check_overflow(options, *plan);
//   for (const OverflowFile& file : check->files) …
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dump/overflow_results.h"
#include "dump/recording.h"

namespace ait::dump {

struct OverflowOptions {
  std::vector<std::string> command;  // at least one word
  bool stop = false;                 // the operation that overflows fails
  std::string output = ".";
  std::string log_level = "info";
};

struct OverflowCheck {
  std::string output;  // absolute
  RecordingEnd end;
  std::vector<OverflowFile> files;    // of processes that had an overflow
  std::vector<std::string> problems;  // why "no overflow" would not be the whole truth
};

// Finds the program and the probe; nothing is made or run yet.
Result<RecordingPlan> plan_overflow_check(const OverflowOptions& options);

// Runs the command and waits for its end. kUnwritable where the output folder cannot be used.
Result<OverflowCheck> check_overflow(const OverflowOptions& options, RecordingPlan plan);

}  // namespace ait::dump
