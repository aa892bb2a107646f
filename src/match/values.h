// The values of a segment: its tensors, named by where they stand in it ("output 0 of the third
// operation") and not by operation. All layers of the same structure have the same values, so what
// is found out about the values of some layers holds for the slots of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/recording.h"
#include "match/program.h"

namespace ait::match {

struct Value {
  uint32_t position = 0;  // of its operation in the segment
  uint32_t place = 0;     // of its slot among the inputs or the outputs of the operation
  capture::Direction direction = capture::Direction::kOutput;
  uint32_t index = 0;                                // of the tensor, as the recording counts
  bool is_leaf = true;                               // its operation has no operations below it
  capture::OpKind kind = capture::OpKind::kUnknown;  // of work that its operation does

  bool is_output() const { return direction == capture::Direction::kOutput; }
};

// Whether a value is the result of an operation's own work. A container only passes on what its
// operations compute, and looking up rows of a table is moving data, too.
bool is_computed(const Value& value);

// Whether two values are results of the same kind of work, which should differ: two projections have
// weights of their own. Additions may add nothing.
bool do_own_work(const Value& one, const Value& other);

// The tensors that can correspond to something: the outputs of operations and, where
// Traits::inputs_are_values, what goes into modules, the only trace of what is computed between
// them. Inputs also count where the recording has no outputs at all.
std::vector<Value> values_of(const capture::Recording& recording, const Segment& segment);

uint32_t slot_of(const capture::Recording& recording, const Segment& segment, const Value& value);

// A segment of one of the two runs that are compared.
struct SegmentSide {
  const capture::Recording& recording;
  const Segment& segment;
  const std::vector<Value>& values;

  const capture::Operation& operation_of(const Value& value) const {
    return recording.operations[segment.operation_at(value.position)];
  }
  // The name of its file without folder and extension: "outtensor0", "output_0".
  std::string tensor_name_of(const Value& value) const;
  // As a topology calls it: "hidden_states"; empty without one.
  std::string topology_name_of(const Value& value) const;
};

}  // namespace ait::match
