// What was weighed for one operation, for somebody who doubts its pair: `ait llm compare --why`.
//
// Data of a few layers and rounds, the places that were looked at, decide for all layers of the same
// structure; docs/pairing.md. What is listed here is what they said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ait::match {

class MatchProblem;

// A tensor of the other run that could be compared with one of the operation.
struct WeighedPartner {
  std::string operation;
  std::string tensor;
  std::string type;
  std::string form;    // "columns 64 to 95 of each, 2 shards side by side"; empty: as it is
  double nearest = 2;  // of all places
  double farthest = 0;
  size_t places = 0;       // in which the two could be compared at all
  size_t agreeing = 0;     // in which unrelated data could hardly be that near
  size_t votes = 0;        // places that took it for the partner
  size_t same_data = 0;    // other tensors that hold the same as this one
  bool is_allowed = true;  // by the mapping file
};

// A tensor of the operation.
struct WeighedTensor {
  bool is_golden = false;
  std::string operation;
  std::string tensor;
  std::string type;
  std::vector<std::string> places;       // that were looked at: "token 0, layer 3"
  std::vector<WeighedPartner> partners;  // the nearest first, and not more than a screen of them
};

// Of the operation at a position of golden's segment, or of mine. `places` are those of the
// problem's evidence.
std::vector<WeighedTensor> weighed_for(const MatchProblem& problem, bool is_golden,
                                       uint32_t position, const std::vector<std::string>& places);

}  // namespace ait::match
