// What `ait llm dump` and `ait llm errcheck` were asked to do, from the words of the command line.
//
//   DumpWords words;
//   words.exec = "bash run.sh";
//   words.ids = {"2,", "3_1"};             // as a shell splits the seed's `-ids 2, 3_1`
//   auto options = understand_dump(words); // options->ids == "2,3_1"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ait::cli {

using Rounds = std::pair<uint64_t, uint64_t>;  // first and last

enum class Probe : uint8_t { kAtb, kTorch };

struct DumpOptions {
  std::vector<std::string> command;
  Probe probe = Probe::kAtb;
  std::vector<std::string> types = {"tensor"};  // each once, as asked for; `model` brings `layer`
  bool only_description = false;
  std::string ids;  // "2,3_1"; empty: all
  std::vector<Rounds> rounds = {{0, 0}};
  bool children = true;
  int time = 1;                // 0 before, 1 after, 2 both
  std::string operation_name;  // lower case, "self,linear"; empty: all
  bool tiling = false;
  int part = 2;  // 0 inputs, 1 outputs, 2 both
  std::string output = ".";
  std::optional<int> device;
  std::string log_level = "info";
  bool dry_run = false;
  bool json = false;

  bool wants(std::string_view type) const;
};

struct ErrcheckOptions {
  std::vector<std::string> command;
  bool stop = false;
  std::string output = ".";
  std::string log_level = "info";
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
  DumpOptions rest;  // what needs no understanding
};

struct ErrcheckWords {
  std::string exec;
  std::vector<std::string> types;
  ErrcheckOptions rest;
};

inline constexpr const char* kDumpTypes = "model, layer, op, kernel, tensor, cpu_profiling, onnx";

// kUsage, naming the option.
Result<DumpOptions> understand_dump(const DumpWords& words);
Result<ErrcheckOptions> understand_errcheck(const ErrcheckWords& words);

// Options that are legal and have no effect, one sentence each.
std::vector<std::string> idle_options(const DumpOptions& options);

// "3,5,7,7"
std::string rounds_text(const std::vector<Rounds>& rounds);

}  // namespace ait::cli
