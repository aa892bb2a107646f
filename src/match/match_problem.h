// What the matches of two segments are found from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "match/evidence.h"
#include "match/op_mapping.h"
#include "match/value_classes.h"

namespace ait::match {

struct PlannedProgram;

class MatchProblem {
 public:
  const SegmentSide& golden;
  const SegmentSide& actual;
  std::span<const Evidence> evidence;  // one for each layer and round that was looked at
  std::span<const TypeMapping> mappings;
  ValueClasses golden_classes;
  ValueClasses actual_classes;

  MatchProblem(const SegmentSide& golden, const SegmentSide& actual,
               std::span<const Evidence> evidence, std::span<const TypeMapping> mappings);

  // Whether the mapping file allows two values to be paired. A type of the library that it mentions
  // goes with the types of modules that it lists and with no other; a tensor that it names, of
  // either side, goes with the tensor or the type that stands on the other side of its line.
  bool is_allowed(uint32_t golden_value, uint32_t actual_value) const;

  // The golden value, or else one that holds the same and is allowed; nothing where none is.
  std::optional<uint32_t> allowed_peer(uint32_t golden_value, uint32_t actual_value) const;

  // Whether a line of the mapping file is about these two.
  bool is_mapped(uint32_t golden_value, uint32_t actual_value) const;

  // The values of golden, and mine, that a line of the mapping file is about: tensors of that name,
  // or first outputs.
  std::vector<uint32_t> golden_values_of(const TypeMapping& line) const;
  std::vector<uint32_t> actual_values_of(const TypeMapping& line) const;

  // "LlamaRMSNorm, Linear_output_0": what lines of the mapping file that are about a value have on
  // their other side; empty where none is.
  std::string listed_for_golden(uint32_t value) const;
  std::string listed_for_actual(uint32_t value) const;

 private:
  using Lines = std::vector<std::vector<uint32_t>>;  // [value]: lines of the mapping file

  Lines lines_of(const SegmentSide& side) const;
  std::vector<uint32_t> values_of_line(const SegmentSide& side, const TypeMapping& line) const;
  std::string listed(const SegmentSide& side, const std::vector<uint32_t>& lines) const;

  Lines golden_lines_;
  Lines actual_lines_;
};

// Says which lines of the mapping file pair nothing, though both of their types occur.
std::vector<std::string> notes_on_idle_lines(const capture::Recording& golden,
                                             const capture::Recording& actual,
                                             std::span<const TypeMapping> mappings,
                                             const std::vector<PlannedProgram>& planned);

}  // namespace ait::match
