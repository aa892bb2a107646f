// What a dump came to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dump/forecast.h"
#include "dump/options.h"
#include "dump/recording.h"
#include "dump/torch_run.h"

namespace ait::dump {

// Files of this run beside the tensors, relative to the dump's folder.
struct Files {
  std::vector<std::string> layers;
  std::vector<std::string> models;
  std::vector<std::string> onnx;
  std::vector<std::string> operation_tables;
  std::vector<std::string> kernel_tables;
  std::vector<std::string> cpu_profiling;

  // Whether there is one of those that grow line by line.
  bool lines() const {
    return !operation_tables.empty() || !kernel_tables.empty() || !cpu_profiling.empty();
  }
  bool any() const { return !layers.empty() || !models.empty() || !onnx.empty() || lines(); }
};

struct Outcome {
  Options options;
  std::string dump;  // {OUT}/ait_dump
  RecordingEnd end;
  Files files;
  TorchRun torch;
  std::vector<std::string> problems;  // why the capture is not complete
  std::vector<std::string> notes;     // worth knowing all the same
  std::optional<Forecast> forecast;   // of a dry run

  bool complete() const { return problems.empty(); }
};

}  // namespace ait::dump
