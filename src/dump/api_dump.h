// Records the calls of torch's functions in one iteration of a Python script that knows nothing of
// it: all that `ait api dump` does except talking about it.
//
//   ApiDumpOptions options;
//   options.command = {"python", "train.py"};
//   auto recorded = record_apis(options, launch::Output::kInherited);
//   for (const std::string& path : recorded->forward_files) …   // one of each process
//
// The recording itself is the Python package's (ait_llm/api_check).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launch/child.h"

namespace ait::dump {

struct ApiDumpOptions {
  std::vector<std::string> command;  // at least one word
  std::string output = ".";
  std::string iterations = "1";  // "1,3"
  bool real_data = false;
  bool old_list = false;  // the older tool's names alone
  bool keep_going = false;
};

struct ApiDump {
  launch::ChildEnd child;
  std::vector<std::string> forward_files;  // that were not there before
};

// Makes the output folder. kNotFound where there is no such program or no Python package.
Result<ApiDump> record_apis(const ApiDumpOptions& options, launch::Output output);

}  // namespace ait::dump
