#include "match/seen.h"

#include <algorithm>

namespace ait::match {
namespace {

using capture::Recording;

// So many of them, from the first to the last.
std::vector<Value> spread_over(const std::vector<Value>& values, size_t count) {
  if (values.size() <= count) return values;
  std::vector<Value> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return out;
}

}  // namespace

SegmentRound segment_round(const RunSide& side, const SideStep& step, const Segment& segment,
                           const std::vector<Value>& values, const Tokens& tokens) {
  return {{side.recording, segment, values}, tokens, [&side, step](uint32_t operation) {
            return round_of(side, step, operation);
          }};
}

Seen seen_of(const RunSide& side, const SideStep& step, const Segment& segment) {
  std::vector<Value> values = values_of(side.recording, segment);
  // A handful of tensors tells it; of a compiled graph, which begins with all sorts of small
  // things, some from everywhere.
  constexpr size_t kEnough = 12;
  constexpr size_t kEnoughOfGraph = 128;
  if (side.recording.graphs.empty())
    values.resize(std::min(values.size(), kEnough));
  else
    values = spread_over(values, kEnoughOfGraph);
  auto shapes = shapes_of(segment_round(side, step, segment, values, {}));
  const Tokens tokens = guess_tokens(shapes, side.recording.traits.batch);
  return {std::move(shapes), tokens};
}

void forget_layers(Program& program) {
  for (const Segment& layer : program.layers)
    program.outside.operations.insert(program.outside.operations.end(), layer.operations.begin(),
                                      layer.operations.end());
  std::sort(program.outside.operations.begin(), program.outside.operations.end());
  program.layers.clear();
}

void forget_experts(const Recording& recording, std::vector<Program>& programs) {
  if (recording.traits.types != capture::Traits::Types::kModules) return;
  constexpr size_t kEnough = 8;  // rounds in which none of more tokens than one was seen
  const RunSide side{recording, programs};
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].layers.empty()) continue;
    for (size_t round = 0; round < std::min(recording.rounds.size(), kEnough); ++round) {
      const SideStep step{i, round, round};
      const Seen outside = seen_of(side, step, programs[i].outside);
      const Seen layer = seen_of(side, step, programs[i].layers.front());
      if (layer.shapes.empty() || outside.tokens.count < 2) continue;
      const bool has_matrices = std::all_of(layer.shapes.begin(), layer.shapes.end(),
                                            [](const Shape& shape) { return shape.size() == 2; });
      if (layer.tokens.count == 0 && has_matrices) forget_layers(programs[i]);
      break;
    }
  }
}

}  // namespace ait::match
