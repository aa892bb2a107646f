#include "match/match_problem.h"

#include <string>

namespace ait::match {

using Types = capture::Traits::Types;

MatchProblem::MatchProblem(const SegmentSide& golden_side, const SegmentSide& actual_side,
                           std::span<const Evidence> all, std::span<const TypeMapping> given)
    : golden(golden_side),
      actual(actual_side),
      evidence(all),
      mappings(given),
      golden_classes(classes_of(golden, evidence, &Evidence::golden)),
      actual_classes(classes_of(actual, evidence, &Evidence::actual)) {}

bool MatchProblem::is_allowed(uint32_t golden_value, uint32_t actual_value) const {
  if (mappings.empty() || golden.recording.traits.types == actual.recording.traits.types)
    return true;
  const Value& g = golden.values[golden_value];
  const Value& a = actual.values[actual_value];
  const bool golden_is_modules = golden.recording.traits.types == Types::kModules;
  if (!(golden_is_modules ? g : a).is_output()) return true;
  const std::string& golden_type = golden.operation_of(g).type;
  const std::string& actual_type = actual.operation_of(a).type;
  const std::string& module = golden_is_modules ? golden_type : actual_type;
  const std::string& library = golden_is_modules ? actual_type : golden_type;
  bool mentioned = false;
  for (const TypeMapping& mapping : mappings) {
    if (library.find(mapping.library) == std::string::npos) continue;
    mentioned = true;
    if (module.find(mapping.module) != std::string::npos) return true;
  }
  return !mentioned;
}

}  // namespace ait::match
