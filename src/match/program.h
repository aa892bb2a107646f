// A recorded run as programs: which operations run for a token, and which of them are the layers of
// the model (layers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/recording.h"

namespace ait::match {

// A stretch of a program: one layer, or all that lies outside of the layers. Operations stand in
// the order in which they run.
struct Segment {
  std::vector<uint32_t> operations;
  // Where the inputs of modules were not recorded: operations before the stretch whose outputs may
  // flow into it. They are positions of the segment, too, after its own operations.
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
  Segment outside;               // everything else
  std::vector<uint32_t> graphs;  // of a run of compiled graphs: those that it consists of

  bool is_shared(uint32_t top) const;
  // Which layer an operation of the recording lies in, from 0; nothing outside of layers.
  std::optional<uint32_t> layer_of(const capture::Recording& recording, uint32_t operation) const;
};

// A torch model is one program, and so is an acceleration library's model that has one graph. A
// model that has graphs of its own for prefill and decode is two programs, in that order. A compiled
// graph is a program; in a run that counts calls, all graphs that ran in one.
std::vector<Program> find_programs(const capture::Recording& recording);

// The programs of a recording that the other run has more of, as it may have recorded rounds in which
// all of its graphs ran: what stands where operations of one of its programs do is one here, too.
// `other_of` is the other run's operation of each operation, kNoOperation where there is none.
std::vector<Program> programs_like(const capture::Recording& recording,
                                   const std::vector<uint32_t>& other_of,
                                   const std::vector<Program>& others);

// Which of them ran in a round of calls; the first where nothing tells it.
size_t program_in(const capture::Recording& recording, const std::vector<Program>& programs,
                  size_t round);

// One of the two runs that are compared.
struct RunSide {
  const capture::Recording& recording;
  const std::vector<Program>& programs;
};

// Segments of equal structures have the same operations and tensors at the same positions, so that
// what is known of one segment holds for the other. Names and types do not matter.
std::string structure_of(const capture::Recording& recording, const Segment& segment);

// The numbers in the names of a layer's modules, in the order of their calls: experts of a mixture are
// called first in another order in every layer, so that equal structures are not the same.
std::string numbers_in(const capture::Recording& recording, const Segment& layer);

// The top-level operation that an operation lies in.
uint32_t top_of(const capture::Recording& recording, uint32_t operation);

}  // namespace ait::match
