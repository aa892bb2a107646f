#include "match/values.h"

#include <algorithm>

#include "match/layers.h"

namespace ait::match {

using capture::Direction;
using capture::Moment;
using capture::Operation;
using capture::OpKind;
using capture::Recording;
using capture::Slot;

bool is_computed(const Value& value) {
  return value.is_leaf && value.kind != OpKind::kUnknown && value.kind != OpKind::kMove &&
         value.kind != OpKind::kEmbedding;
}

bool do_own_work(const Value& one, const Value& other) {
  return is_computed(one) && one.kind == other.kind && one.kind != OpKind::kAdd;
}

std::vector<Value> values_of(const Recording& recording, const Segment& segment) {
  const bool has_outputs =
      std::any_of(recording.slots.begin(), recording.slots.end(), [](const Slot& slot) {
        return slot.direction == Direction::kOutput && slot.moment == Moment::kAfter;
      });
  const bool results_only = has_outputs && !recording.traits.inputs_are_values;
  std::vector<Value> values;
  for (uint32_t position = 0; position < segment.size(); ++position) {
    const uint32_t operation = segment.operation_at(position);
    const bool leaf = is_leaf(recording, operation);
    uint32_t inputs = 0;
    uint32_t outputs = 0;
    for (uint32_t i = recording.first_slot[operation]; i < recording.first_slot[operation + 1];
         ++i) {
      const Slot& slot = recording.slots[i];
      const bool is_output = slot.direction == Direction::kOutput;
      const uint32_t place = is_output ? outputs++ : inputs++;
      // What lies in an output's memory before the operation has run is no result either.
      const bool is_result = is_output && slot.moment != Moment::kBefore;
      if (results_only && !is_result) continue;
      values.push_back({position, place, slot.direction, slot.index, leaf,
                        recording.operations[operation].kind});
    }
  }
  return values;
}

uint32_t slot_of(const Recording& recording, const Segment& segment, const Value& value) {
  const uint32_t operation = segment.operation_at(value.position);
  uint32_t first = recording.first_slot[operation];
  while (recording.slots[first].direction != value.direction) ++first;  // inputs come first
  return first + value.place;
}

std::string SegmentSide::tensor_name_of(const Value& value) const {
  return recording.slots[slot_of(recording, segment, value)].tensor();
}

std::string SegmentSide::topology_name_of(const Value& value) const {
  const Operation& operation = operation_of(value);
  const auto& names = value.is_output() ? operation.outputs : operation.inputs;
  return value.index < names.size() ? names[value.index] : std::string();
}

}  // namespace ait::match
