// Who corresponds to whom in a stretch of two programs: decided by data where they speak, by types,
// order and data flow where they do not.
//
// Data lead because names may say nothing and types lie (a fused operation has any name); but a
// fault makes data differ from the operation on where it lies. So each layer that was looked at has
// a vote on its own evidence, and what a majority says holds for all layers of the same structure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "match/evidence.h"
#include "match/op_mapping.h"

namespace ait::match {

struct Match {
  uint32_t golden = 0;                 // a value
  std::optional<uint32_t> golden_too;  // which is added to it
  uint32_t actual = 0;
  Form form;
  Certainty certainty = Certainty::kCertain;
  std::string why;
};

struct SegmentMatch {
  std::vector<Match> matches;  // by actual value
  // Why a value is in none of them; empty for those that are.
  std::vector<std::string> golden_alone;
  std::vector<std::string> actual_alone;
  // A golden value that holds the same as one that is matched.
  std::vector<bool> golden_is_copy;
};

struct MatchSide {
  const capture::Recording& recording;
  const Segment& segment;  // any of those that the evidence is of
  const std::vector<Value>& values;
};

// `evidence` may be empty: then only types and order speak.
SegmentMatch match_segment(const MatchSide& golden, const MatchSide& actual,
                           std::span<const Evidence> evidence,
                           std::span<const TypeMapping> mappings);

}  // namespace ait::match
