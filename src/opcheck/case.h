// The operations of a dump, each with its tensors in one round on one rank: what there is to check.
//
//   auto cases = find_cases({.folder = "ait_dump"});
//   if (!cases) return fail(cases.error());
//   for (const Case& each : cases->cases) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::opcheck {

// Where a tensor of an operation lies.
struct TensorPlace {
  std::string path;
  bool before = false;  // recorded before the operation ran
};
using TensorPlaces = std::vector<std::optional<TensorPlace>>;  // by index

struct Case {
  std::string id;             // "3_1_0"
  std::vector<uint64_t> ids;  // the same as numbers
  std::string type;           // "LinearOperation"
  std::string param;          // JSON
  std::string folder;         // that holds its tensors
  std::string again_folder;   // and all else that it takes to check it: of all ranks, of a table
  std::string rank;           // as its folder says it: a device
  std::string rank_folder;    // "0_8841"
  std::string round;
  std::string name;     // below the round: "3_Prefill_layer/0_LinearOperation"
  TensorPlaces inputs;  // as they went in, where that was recorded, else as they were after it
  TensorPlaces inputs_after;  // as they were after it
  TensorPlaces outputs;
  std::vector<TensorPlaces> ranks;        // the inputs of all ranks, where there are several
  std::vector<std::string> rank_params;   // and their parameters
  std::vector<std::string> rank_folders;  // and folders
  std::vector<std::string> input_shapes;  // as a table says them: "12,4096"; "" where it does not
  std::vector<std::string> output_shapes;
  std::string problem;  // why it cannot be checked; empty: it can
};

struct Search {
  std::string folder = {};                      // -i: a dump, or any part of one
  std::string table = {};                       // -c: operation_tensors_0.csv; empty: none
  std::vector<std::vector<uint64_t>> ids = {};  // -ids: these and what is below them; empty: all
  std::vector<std::string> names = {};          // -opname: parts of types in any case; empty: all
  bool needs_outputs = false;  // fails where nothing at all was recorded after an operation
};

struct Cases {
  std::vector<Case> cases;      // by id, then rank, then round
  std::vector<Error> problems;  // of the dump
};

// Fails where there is no dump, or no table where one is named.
Result<Cases> find_cases(const Search& search);

}  // namespace ait::opcheck
