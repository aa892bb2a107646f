// Where the tensors of a run come from: who computed each, and of which others.
//
//   const Flow flow = find_flow(side, program, steps);
//   const Made& made = flow.made[slot];
//   if (made.is_known) …      // recording.operations[made.operation] computed it of made.sources
//
// An input that holds what an earlier operation put out is that tensor. Names of a topology tell it
// where there is one; otherwise data do, which are read of a few layers: what is found for these
// holds for all of the same structure. What goes into a torch module and came out of none was
// computed between modules, by the module around it, of what its parts had put out until then and
// nobody had read; where it is a sum or a product of some of these, of just these.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/op_kind.h"
#include "capture/recording.h"
#include "match/program.h"
#include "match/tokens.h"

namespace ait::match {

// How one tensor came about.
struct Made {
  bool is_known = false;
  bool is_copy = false;  // it holds what its only source holds
  capture::OpKind kind = capture::OpKind::kUnknown;
  uint32_t operation = capture::kNoOperation;
  // Tensors that went into it, by their numbers in Flow::made. None: it came from outside.
  std::vector<uint32_t> sources;

  bool operator==(const Made&) const = default;
};

struct Flow {
  // Of each slot; behind them, of tensors that a topology names and nobody recorded.
  std::vector<Made> made;
};

// Of one program, by what it did in one of the first of these steps; there is at least one.
Flow find_flow(const RunSide& side, size_t program, const std::vector<const SideStep*>& steps);

}  // namespace ait::match
