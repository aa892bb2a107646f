#include "match/level.h"

#include <array>
#include <utility>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::kNoOperation;
using capture::Recording;
using Identity = capture::Traits::Identity;

constexpr std::array<std::pair<std::string_view, CompareLevel>, 5> kWords = {
    {{"layer", CompareLevel::kLayer},
     {"module", CompareLevel::kModule},
     {"api", CompareLevel::kApi},
     {"logits", CompareLevel::kLogits},
     {"token", CompareLevel::kLogits}}};

constexpr std::string_view kHead = "lm_head";

bool is_layer(const Program& program, uint32_t operation) {
  for (const Segment& layer : program.layers)
    if (layer.operations.front() == operation) return true;
  return false;
}

// Embedding, norm and head: what a library's graph or a module tree has beside its layers.
bool stands_beside_layers(const Recording& recording, const Program& program, uint32_t operation) {
  if (program.layer_of(recording, operation)) return false;
  return recording.operations[operation].parent == kNoOperation ||
         (recording.traits.identity == Identity::kNames && is_leaf(recording, operation));
}

// The head by its name, or else what computed last.
uint32_t last_operation(const Recording& recording, const Program& program) {
  if (recording.traits.identity == Identity::kPlaces) return program.tops.back();
  for (uint32_t i = 0; i < recording.operations.size(); ++i)
    if (recording.operations[i].name.ends_with(kHead)) return i;
  return program.tops.front();
}

}  // namespace

Result<CompareLevel> parse_compare_level(std::string_view word) {
  if (word.empty()) return CompareLevel::kAll;
  for (const auto& [name, level] : kWords)
    if (name == word) return level;
  return fail(Error(ErrorCode::kUsage) << "--cmp-level does not know '" << printable(word)
                                       << "'; give layer, module, api or logits");
}

bool is_of(CompareLevel level, const Recording& recording, const Program& program,
           uint32_t operation) {
  const bool is_kernel = recording.operations[operation].level == capture::Level::kKernel;
  if (is_kernel && level != CompareLevel::kApi) return level == CompareLevel::kAll;
  switch (level) {
    case CompareLevel::kAll:
      return true;
    case CompareLevel::kLayer:
      return is_layer(program, operation) || stands_beside_layers(recording, program, operation);
    case CompareLevel::kModule: {
      const uint32_t parent = recording.operations[operation].parent;
      return parent != kNoOperation && is_layer(program, parent);
    }
    case CompareLevel::kApi:
      return is_leaf(recording, operation);
    case CompareLevel::kLogits:
      return operation == last_operation(recording, program);
  }
  return false;
}

}  // namespace ait::match
