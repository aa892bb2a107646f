// Pairs what data leave open: by what operations do and in which order, by what they read, and by
// what they hold. These pairs are likely, never certain.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "match/match_problem.h"
#include "match/segment_match.h"

namespace ait::match {

struct TypedPair {
  uint32_t golden;  // a value
  uint32_t actual;
  std::string why;
};

// `matches` are what is settled. Only values that are in none of them are paired.
std::vector<TypedPair> pair_by_types(const MatchProblem& problem, std::span<const Match> matches);

}  // namespace ait::match
