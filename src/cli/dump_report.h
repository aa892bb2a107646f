// What a dump came to: as the manifest that stays with it, and as the summary at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/dump_options.h"
#include "cli/forecast.h"
#include "cli/recording.h"
#include "cli/torch_run.h"

namespace ait::cli {

// Files of this run beside the tensors, relative to the dump's folder.
struct DumpFiles {
  std::vector<std::string> layers;
  std::vector<std::string> models;
  std::vector<std::string> onnx;
  std::vector<std::string> operation_tables;
  std::vector<std::string> kernel_tables;
  std::vector<std::string> cpu_profiling;

  bool any() const;
};

struct DumpReport {
  DumpOptions options;
  std::string dump;  // {OUT}/ait_dump
  RecordingEnd end;
  DumpFiles files;
  TorchRun torch;
  std::vector<std::string> problems;  // why the capture is not complete
  std::vector<std::string> notes;     // worth knowing all the same
  std::optional<Forecast> forecast;   // of a dry run

  bool complete() const { return problems.empty(); }
};

// Fills `problems` and `notes` from the rest. `atb` is only asked for where no process has called.
void judge(DumpReport& report, const launch::Program& program,
           std::optional<launch::AtbLibrary> (*atb)() = &launch::find_atb);

// One JSON document with a line end. Every path in it is relative to the dump's folder.
std::string manifest_text(const DumpReport& report);

// What the person at the terminal is told, the last line being what to type next.
std::string summary_text(const DumpReport& report);

// Writes {dump}/manifest.json. One that is there already is kept as manifest_{its start}.json.
Result<void> write_manifest(const DumpReport& report);

}  // namespace ait::cli
