// What the matches of two segments are found from.
#pragma once

#include <cstdint>
#include <span>

#include "match/evidence.h"
#include "match/op_mapping.h"
#include "match/value_classes.h"

namespace ait::match {

struct MatchProblem {
  const SegmentSide& golden;
  const SegmentSide& actual;
  std::span<const Evidence> evidence;  // one for each layer and round that was looked at
  std::span<const TypeMapping> mappings;
  ValueClasses golden_classes;
  ValueClasses actual_classes;

  MatchProblem(const SegmentSide& golden, const SegmentSide& actual,
               std::span<const Evidence> evidence, std::span<const TypeMapping> mappings);

  // Whether the mapping file allows two values to be paired. A type of the library that it
  // mentions goes with the types of modules that it lists and with no other; inputs of modules are
  // always allowed, as the file is about outputs.
  bool is_allowed(uint32_t golden_value, uint32_t actual_value) const;
};

}  // namespace ait::match
