// Who corresponds to whom in two segments: decided by data where they tell it, by types, order and
// data flow where they do not.
//
// Data lead because names may be meaningless and types misleading (a fused operation may have any
// name). But a fault makes the data differ from its operation on, so layers vote (votes.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

// The sides' segments are any of those that the evidence is of. `evidence` may be empty: then types
// and order decide alone. Pairs of values that are `settled` already are the anchors of what is
// found, and no matches of it.
using SettledValues = std::vector<std::pair<uint32_t, uint32_t>>;  // golden's and mine
SegmentMatch match_segment(const SegmentSide& golden, const SegmentSide& actual,
                           std::span<const Evidence> evidence,
                           std::span<const TypeMapping> mappings,
                           const SettledValues& settled = {});

}  // namespace ait::match
