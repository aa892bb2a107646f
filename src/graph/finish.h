// Turns what a probe left behind during a run into the topology files of a dump.
//
//   auto finished = finish_topologies(scratch, "out/ait_dump", {.layers = true, .onnx = true});
//   if (!finished) return fail(finished.error());
//   for (const Error& problem : finished->problems) log_warning(problem.text());
//
// The scratch folder holds, of every process that was recorded, {process}.graph.{seq}.json and
// {process}.model.{seq}.json: the name under which something was reported, a line end, and the report
// (atb_reports.h). A process goes by its pid, or by a name that record/claim.h gave it. `seq` counts from 0 in the order of delivery.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::graph {

struct FinishOptions {
  bool layers = true;   // {dump_root}/layer/{process}/{opName}.json
  bool models = false;  // {dump_root}/model/{process}/{modelName}.json
  bool onnx = false;    // beside each of them, with shapes where the dump has a table of operations
};

struct FinishedTopologies {
  size_t layers = 0;  // files written
  size_t models = 0;
  size_t onnx = 0;

  // One for each report that gave no file, and for each file that could not be written. None of
  // them keeps the others from being done.
  std::vector<Error> problems;
};

// Fails only if the scratch folder cannot be looked through. Names that are no file names (with
// '/', too long, …) are problems and write nothing. Of two reports under one name the first counts.
Result<FinishedTopologies> finish_topologies(const std::string& scratch_folder,
                                             const std::string& dump_root,
                                             const FinishOptions& options);

}  // namespace ait::graph
