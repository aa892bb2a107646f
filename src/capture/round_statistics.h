// The statistics of one round of a torch dump, in the order in which its tensors were computed: a
// module's outputs after those of the modules inside it.
//
//     {rank}/{round}/statistics.csv            one table for the round: "root.fc#1/output" in its column File
//     {rank}/{round}/{module}/statistics.csv   or one for each call of a module: "output"
//
// A round may have either, and tensors beside them; those without a line in a table are listed with
// their file, to be measured by whoever wants their numbers.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "formats/registry.h"

namespace ait::capture {

struct RoundTensor {
  std::string module;                  // with its call: "root.fc#1"
  std::string tensor;                  // "output_0"
  std::string file;                    // of a tensor that no table tells of; else empty
  formats::Description description{};  // where there is no file
};

// `rank` is the folder that holds model_tree.json and the rounds. What cannot be read is one of
// `problems`; a round without anything is empty.
std::vector<RoundTensor> read_round_statistics(const std::string& rank, const std::string& round,
                                               std::vector<Error>& problems);

}  // namespace ait::capture
