// What `ait llm dump` and `ait llm errcheck` were asked to do, from the words of the command line.
//
//   DumpWords words;
//   words.exec = "bash run.sh";
//   words.ids = {"2,", "3_1"};             // as a shell splits the seed's `-ids 2, 3_1`
//   auto options = understand_dump(words); // options->record.ids == "2,3_1"
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dump/options.h"
#include "dump/overflow_check.h"

namespace ait::cli {

struct DumpOptions {
  dump::Options record;
  bool json = false;
};

struct ErrcheckOptions {
  dump::OverflowOptions check;
  bool json = false;
};

// Options as they were typed. Lists may come as several words.
struct DumpWords {
  std::string exec;
  std::string probe = "atb";
  std::vector<std::string> types = {"tensor"};
  std::vector<std::string> ids;
  std::vector<std::string> rounds;
  std::vector<std::string> operation_names;
  std::string children = "true";
  std::string time = "1";
  std::string part = "2";
  std::string device;
  std::string seed;
  std::string when;
  std::string keep;
  DumpOptions rest;  // what needs no understanding
};

inline constexpr const char* kDefaultSeed = "2024";
inline constexpr const char* kDumpTypes = "model, layer, op, kernel, tensor, cpu_profiling, onnx";

// kUsage, naming the option.
Result<DumpOptions> understand_dump(const DumpWords& words);

// Options that are legal and have no effect, one sentence each.
std::vector<std::string> idle_options(const dump::Options& options);

}  // namespace ait::cli
