#include "match/match_problem.h"

#include <algorithm>

#include "match/plan.h"

namespace ait::match {
namespace {

using Types = capture::Traits::Types;

bool is_modules(const SegmentSide& side) { return side.recording.traits.types == Types::kModules; }

// Both are sorted.
bool have_one_in_common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](uint32_t each) { return std::binary_search(b.begin(), b.end(), each); });
}

}  // namespace

MatchProblem::MatchProblem(const SegmentSide& golden_side, const SegmentSide& actual_side,
                           std::span<const Evidence> all, std::span<const TypeMapping> given)
    : golden(golden_side),
      actual(actual_side),
      evidence(all),
      mappings(given),
      golden_classes(classes_of(golden, evidence, &Evidence::golden)),
      actual_classes(classes_of(actual, evidence, &Evidence::actual)) {
  // A file says which types of modules correspond to types of the library.
  if (golden.recording.traits.types == actual.recording.traits.types) mappings = {};
  golden_lines_ = lines_of(golden);
  actual_lines_ = lines_of(actual);
}

MatchProblem::Lines MatchProblem::lines_of(const SegmentSide& side) const {
  const bool modules = is_modules(side);
  Lines out(side.values.size());
  for (uint32_t line = 0; line < mappings.size(); ++line) {
    const TypeMapping& mapping = mappings[line];
    const std::string& type = modules ? mapping.module : mapping.library;
    const std::string& tensor = modules ? mapping.module_tensor : mapping.library_tensor;
    for (uint32_t i = 0; i < side.values.size(); ++i)
      if (side.operation_of(side.values[i]).type.find(type) != std::string::npos &&
          (tensor.empty() || is_tensor_named(side.tensor_name_of(side.values[i]), tensor)))
        out[i].push_back(line);
  }
  return out;
}

bool MatchProblem::is_mapped(uint32_t golden_value, uint32_t actual_value) const {
  return have_one_in_common(golden_lines_[golden_value], actual_lines_[actual_value]);
}

bool MatchProblem::is_allowed(uint32_t golden_value, uint32_t actual_value) const {
  if (mappings.empty() || is_mapped(golden_value, actual_value)) return true;
  const bool golden_is_modules = is_modules(golden);
  const auto& library =
      golden_is_modules ? actual_lines_[actual_value] : golden_lines_[golden_value];
  const auto& modules =
      golden_is_modules ? golden_lines_[golden_value] : actual_lines_[actual_value];
  return library.empty() && std::all_of(modules.begin(), modules.end(), [&](uint32_t line) {
           return mappings[line].module_tensor.empty();
         });
}

std::optional<uint32_t> MatchProblem::allowed_peer(uint32_t golden_value,
                                                   uint32_t actual_value) const {
  if (is_allowed(golden_value, actual_value)) return golden_value;
  for (const uint32_t peer : golden_classes.peers_of(golden_value))
    if (is_allowed(peer, actual_value)) return peer;
  return std::nullopt;
}

std::vector<uint32_t> MatchProblem::values_of_line(const SegmentSide& side,
                                                   const TypeMapping& line) const {
  const auto number = static_cast<uint32_t>(&line - mappings.data());
  const bool modules = is_modules(side);
  const bool is_named = !(modules ? line.module_tensor : line.library_tensor).empty();
  const Lines& lines = &side == &golden ? golden_lines_ : actual_lines_;
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < side.values.size(); ++i)
    if ((is_named || (side.values[i].is_output() && side.values[i].index == 0)) &&
        std::binary_search(lines[i].begin(), lines[i].end(), number))
      out.push_back(i);
  return out;
}

std::vector<uint32_t> MatchProblem::golden_values_of(const TypeMapping& line) const {
  return values_of_line(golden, line);
}

std::vector<uint32_t> MatchProblem::actual_values_of(const TypeMapping& line) const {
  return values_of_line(actual, line);
}

std::string MatchProblem::listed(const SegmentSide& side,
                                 const std::vector<uint32_t>& lines) const {
  std::vector<std::string> names;
  for (const uint32_t line : lines) {
    const TypeMapping& mapping = mappings[line];
    const bool modules = is_modules(side);
    // A type alone binds the library's side only.
    if (modules && mapping.module_tensor.empty()) continue;
    const std::string& type = modules ? mapping.library : mapping.module;
    const std::string& tensor = modules ? mapping.library_tensor : mapping.module_tensor;
    std::string name = type;
    if (!tensor.empty()) name.append("_").append(tensor);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string MatchProblem::listed_for_golden(uint32_t value) const {
  return listed(golden, golden_lines_[value]);
}

std::string MatchProblem::listed_for_actual(uint32_t value) const {
  return listed(actual, actual_lines_[value]);
}

std::vector<std::string> notes_on_idle_lines(const capture::Recording& golden,
                                             const capture::Recording& actual,
                                             std::span<const TypeMapping> mappings,
                                             const std::vector<PlannedProgram>& planned) {
  std::vector<std::string> notes;
  if (golden.traits.types == actual.traits.types) return notes;
  const bool golden_is_modules = golden.traits.types == Types::kModules;
  const auto is_of = [](const capture::Recording& recording, const std::vector<uint32_t>& slots,
                        const std::string& type) {
    return !slots.empty() && recording.operations[recording.slots[slots[0]].operation].type.find(
                                 type) != std::string::npos;
  };
  for (const TypeMapping& line : mappings) {
    bool golden_occurs = false;
    bool actual_occurs = false;
    bool is_idle = true;
    for (const PlannedProgram& program : planned) {
      for (const PlannedPair& pair : program.pairs) {
        const bool golden_is =
            is_of(golden, pair.golden, golden_is_modules ? line.module : line.library);
        const bool actual_is =
            is_of(actual, pair.actual, golden_is_modules ? line.library : line.module);
        golden_occurs |= golden_is;
        actual_occurs |= actual_is;
        is_idle &= !(golden_is && actual_is);
      }
    }
    if (is_idle && golden_occurs && actual_occurs)
      notes.push_back("the mapping file's line " + line.library + ": " + line.module +
                      " pairs nothing: the two types are not in the same layers, not equally "
                      "often, or their sizes do not fit");
  }
  return notes;
}

}  // namespace ait::match
