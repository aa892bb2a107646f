#include "match/data_flow.h"

#include <algorithm>
#include <cctype>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Operation;
using capture::OpKind;

// What the operation at a position reads first: by the names of tensors, what the last leaf before
// it wrote.
uint32_t first_input_producer(const SegmentSide& side, uint32_t position) {
  const Operation& reader = side.recording.operations[side.segment.operation_at(position)];
  if (reader.inputs.empty()) return kNoValue;
  for (uint32_t before = position; before-- > 0;) {
    const Operation& writer = side.recording.operations[side.segment.operation_at(before)];
    const auto name = std::find(writer.outputs.begin(), writer.outputs.end(), reader.inputs[0]);
    if (name == writer.outputs.end()) continue;
    const uint32_t value = find_value(side, before, Direction::kOutput,
                                      static_cast<uint32_t>(name - writer.outputs.begin()));
    if (value != kNoValue && side.values[value].is_leaf) return value;
  }
  return kNoValue;
}

}  // namespace

uint32_t find_value(const SegmentSide& side, uint32_t position, Direction direction,
                    uint32_t index) {
  for (uint32_t i = 0; i < side.values.size(); ++i)
    if (side.values[i].position == position && side.values[i].direction == direction &&
        side.values[i].index == index)
      return i;
  return kNoValue;
}

bool is_called(const Operation& operation, std::string_view word) {
  const std::string& type = operation.type;
  return std::search(type.begin(), type.end(), word.begin(), word.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != type.end();
}

bool has_topology(const SegmentSide& side) {
  return std::any_of(
      side.segment.operations.begin(), side.segment.operations.end(),
      [&](uint32_t operation) { return !side.recording.operations[operation].inputs.empty(); });
}

uint32_t given_to(const SegmentSide& side, uint32_t position) {
  if (has_topology(side)) return first_input_producer(side, position);
  for (uint32_t before = position; before-- > 0;)
    if (is_leaf(side.recording, side.segment.operation_at(before)))
      return find_value(side, before, Direction::kOutput, 0);
  return kNoValue;
}

bool may_feed(const SegmentSide& side, uint32_t producer, OpKind reader) {
  const Value& value = side.values[producer];
  const bool is_elementwise = side.operation_of(value).type.find("Elewise") != std::string::npos;
  if (reader == OpKind::kNorm)
    return value.kind == OpKind::kAdd || (value.kind == OpKind::kUnknown && is_elementwise);
  return value.kind == OpKind::kAttention || value.kind == OpKind::kActivation ||
         value.kind == OpKind::kMultiply || (value.kind == OpKind::kUnknown && is_elementwise);
}

std::set<uint32_t> partial_sums(const SegmentSide& side) {
  std::set<uint32_t> out;
  for (uint32_t i = 0; i < side.values.size(); ++i)
    if (side.values[i].is_output() && is_called(side.operation_of(side.values[i]), "allreduce"))
      out.insert(given_to(side, side.values[i].position));
  return out;
}

bool adds_first(const SegmentSide& side, const Value& norm) {
  const Operation& operation = side.operation_of(norm);
  const bool has_bias = operation.type.find("LayerNorm") != std::string::npos;
  return find_value(side, norm.position, Direction::kOutput, 1) != kNoValue ||
         operation.outputs.size() > 1 || operation.inputs.size() > (has_bias ? 3u : 2u);
}

}  // namespace ait::match
