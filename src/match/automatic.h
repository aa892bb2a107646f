// Pairs two recorded runs without being told who belongs to whom: torch against an acceleration
// library, either against its own kind, float against quantised, whole against shards.
//
//   auto found = pair_automatically(golden, actual, {});
//   if (!found) return fail(found.error());             // kUsage: no round has a counterpart
//   compare_pairs(found->pairs, …);
//
// Where both runs have the same operations (by name, or by place in the graph) that settles it.
// Otherwise layers are found as what repeats, and within a layer data decide, then types and order:
// docs/pairing.md. What is found for a few layers and rounds holds for all, so the work does not
// grow with their number; pairs are made when they are asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"
#include "match/level.h"
#include "match/op_mapping.h"
#include "match/pair.h"
#include "match/tokens.h"
#include "match/why.h"

namespace ait::match {

struct AutomaticOptions {
  std::vector<TypeMapping> mappings;
  TokenMap token_map;
  CompareLevel level = CompareLevel::kAll;
  bool rounds_are_named = false;  // a person named one round of each side, as a path
  std::string why = {};           // an operation of either run: what was weighed for it is wanted
};

// How much of one run has a partner, in operations, each counted once however many rounds there
// are.
struct Coverage {
  size_t operations = 0;
  size_t paired = 0;
  size_t copies = 0;                    // hold the same data as one that is paired
  std::map<std::string, size_t> alone;  // reasons, and how many
};

struct AlignedToken {
  std::string token;
  std::string golden_round;
  std::string actual_round;
  bool is_prefill = false;
  bool phase_is_known = true;
};

struct AutomaticPairs {
  Pairs pairs;  // by token, then in the order in which my side computed
  Coverage golden;
  Coverage actual;
  size_t golden_layers = 0;
  size_t actual_layers = 0;
  size_t certain = 0;  // of actual.paired
  size_t likely = 0;
  std::string method;  // "by the place in the graph"
  std::vector<AlignedToken> tokens;
  std::vector<std::string> notes;
  std::vector<WeighedTensor> weighed;  // of the operation that was asked for
};

using SharedRecording = std::shared_ptr<const capture::Recording>;
Result<AutomaticPairs> pair_automatically(SharedRecording golden, SharedRecording actual,
                                          const AutomaticOptions& options);

}  // namespace ait::match
