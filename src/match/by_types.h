// Pairs what data leave open by what operations do, in which order, and what they read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "match/op_mapping.h"
#include "match/segment_match.h"

namespace ait::match {

struct TypeHints {
  std::vector<size_t> golden_columns;  // of each value; 0: not known
  std::vector<size_t> actual_columns;
  std::vector<bool> actual_is_float;
};

struct TypedPair {
  uint32_t golden;
  uint32_t actual;
  std::string why;
};

// `matches` are what is settled: they split the rest into stretches, and only stretches with
// equally many operations of a kind on both sides are paired, in order.
std::vector<TypedPair> pair_by_types(const MatchSide& golden, const MatchSide& actual,
                                     std::span<const Match> matches, const TypeHints& hints,
                                     std::span<const TypeMapping> mappings);

// Whether a mapping file leaves the two free for each other.
bool may_correspond(const MatchSide& golden, const Value& golden_value, const MatchSide& actual,
                    const Value& actual_value, std::span<const TypeMapping> mappings);

}  // namespace ait::match
