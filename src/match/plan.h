// What was found out about two runs, in the form from which any of its pairs can be made: millions
// of pairs differ only in round and rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "match/automatic.h"
#include "match/routing.h"
#include "match/segment_match.h"
#include "match/tokens.h"

namespace ait::match {

// A pair in whatever round and on whatever rank; without one side, a tensor that has no partner.
struct PlannedPair {
  std::vector<uint32_t> golden;  // slots; two are added up
  std::vector<uint32_t> actual;
  // The golden slots are of my own side: what went into a mere copy is held against what came out.
  bool golden_is_mine = false;
  Form form;
  Certainty certainty = Certainty::kCertain;
  std::string why;
  std::string alone;
  std::shared_ptr<const RoutedPair> routed;  // how the rows of experts were chosen; null: as usual
  std::string who;  // whom `alone` speaks of, where that is somebody else in every pair
};

inline constexpr size_t kNoProgram = ~size_t{0};

// All pairs of one golden program with one of my side's; or of one program what its rounds hold
// that have no counterpart.
struct PlannedProgram {
  size_t golden = 0;  // kNoProgram: what only my side has
  size_t actual = 0;
  std::vector<PlannedPair> pairs;
};

// Puts the pairs in order and makes them available; counts what is covered. There is a program for
// every step of the alignment, those that stand alone as well. Pairs of other levels than the one
// asked for are counted, and left out.
AutomaticPairs carry_out(SharedRecording golden, SharedRecording actual,
                         std::vector<Program> golden_programs, std::vector<Program> actual_programs,
                         Alignment alignment, std::vector<PlannedProgram> planned,
                         CompareLevel level = CompareLevel::kAll);

}  // namespace ait::match
