// A recorded run as a program: which operations run for a token, and which of them are the layers
// of the model. Names decide nothing here: layers are what repeats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/recording.h"

namespace ait::match {

// A stretch of a program: operations in the order in which they run, whole subtrees.
struct Segment {
  std::vector<uint32_t> operations;
  // Of torch, where inputs were not recorded: operations before the stretch whose outputs may go
  // into it.
  std::vector<uint32_t> before;

  size_t size() const { return operations.size() + before.size(); }
  uint32_t operation_at(size_t position) const {
    return position < operations.size() ? operations[position]
                                        : before[position - operations.size()];
  }
};

// What runs for one token.
struct Program {
  std::vector<uint32_t> tops;    // top-level operations
  std::vector<uint32_t> shared;  // those of them that other programs of the recording run, too
  std::vector<Segment> layers;
  Segment outside;  // everything else

  bool is_shared(uint32_t top) const;
  // Which layer an operation of the recording lies in, from 0; nothing outside of layers.
  std::optional<uint32_t> layer_of(const capture::Recording& recording, uint32_t operation) const;
};

// A torch model, or an acceleration library's that has one graph, is one program. One with graphs
// of its own for prefill and decode is two, in that order.
std::vector<Program> find_programs(const capture::Recording& recording);

// Whether two segments have the same structure, so that what is known of one operation holds for
// the one at the same place in the other. Names and types do not matter.
std::string structure_of(const capture::Recording& recording, const Segment& segment);

// The top-level operation that an operation lies in.
uint32_t top_of(const capture::Recording& recording, uint32_t operation);

}  // namespace ait::match
