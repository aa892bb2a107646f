// What the shapes of a round's tensors tell: how many tokens it worked on, and whether what repeats in
// a model are its layers.
#pragma once

#include <vector>

#include "match/evidence.h"
#include "match/program.h"
#include "match/sample.h"
#include "match/tokens.h"

namespace ait::match {

SegmentRound segment_round(const RunSide& side, const SideStep& step, const Segment& segment,
                           const std::vector<Value>& values, const Tokens& tokens);

// The shapes of some tensors in a round, and how many tokens they tell.
struct Seen {
  std::vector<Shape> shapes;
  Tokens tokens;
};
Seen seen_of(const RunSide& side, const SideStep& step, const Segment& segment);

// Makes one segment of everything.
void forget_layers(Program& program);

// Experts of a mixture repeat, too, and in a model of one layer may be most of it. They are no
// layers: none of them has rows for all tokens.
void forget_experts(const capture::Recording& recording, std::vector<Program>& programs);

}  // namespace ait::match
