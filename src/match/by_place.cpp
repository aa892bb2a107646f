#include "match/by_place.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "match/same_ranks.h"

#include "match/by_names.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::Level;
using capture::Moment;
using capture::Operation;
using capture::Recording;
using capture::Slot;
using Identity = capture::Traits::Identity;

std::string key_of(const Recording& recording, const Operation& operation) {
  if (recording.traits.identity == Identity::kNames || operation.ids.empty()) return operation.name;
  std::string key;
  for (const uint64_t id : operation.ids) key += std::to_string(id) + "_";
  return key;
}

std::map<std::string, uint32_t> by_key(const Recording& recording) {
  std::map<std::string, uint32_t> out;
  for (uint32_t i = 0; i < recording.operations.size(); ++i)
    out.emplace(key_of(recording, recording.operations[i]), i);
  return out;
}

// "output_0" of "root.lm_head/output_0.pth"; where places count, direction and number.
std::string slot_key(const Recording& recording, const Slot& slot) {
  if (recording.traits.identity == Identity::kNames) return slot.tensor();
  return (slot.direction == Direction::kInput ? "in" : "out") + std::to_string(slot.index) +
         (slot.moment == Moment::kBefore ? "before" : "");
}

// Before an operation has run, its output is whatever the memory held.
bool is_unwritten(const Slot& slot) {
  return slot.direction == Direction::kOutput && slot.moment == Moment::kBefore;
}

bool has_outputs(const Recording& recording, uint32_t operation) {
  for (uint32_t slot = recording.first_slot[operation]; slot < recording.first_slot[operation + 1];
       ++slot)
    if (recording.slots[slot].direction == Direction::kOutput &&
        !is_unwritten(recording.slots[slot]))
      return true;
  return false;
}

// Not where a tool says no types.
bool have_other_types(const Operation& golden, const Operation& actual) {
  return golden.type != actual.type && !golden.type.empty() && !actual.type.empty();
}

void plan_operation(const Recording& golden, uint32_t g, const Recording& actual, uint32_t a,
                    const PlaceMap& places, PlannedProgram& out) {
  // Inputs are other operations' outputs; they are compared only where there is nothing else.
  const bool outputs_only = (g == kNoOperation || has_outputs(golden, g)) &&
                            (a == kNoOperation || has_outputs(actual, a));
  const bool several = actual.ranks.size() > 1 || golden.ranks.size() > 1;
  std::map<std::string, PlannedPair> pairs;
  const auto add = [&](const Recording& recording, uint32_t operation,
                       std::vector<uint32_t> PlannedPair::* side) {
    if (operation == kNoOperation) return;
    for (uint32_t slot = recording.first_slot[operation];
         slot < recording.first_slot[operation + 1]; ++slot) {
      const Slot& s = recording.slots[slot];
      if (is_unwritten(s) || (outputs_only && s.direction == Direction::kInput)) continue;
      (pairs[slot_key(recording, s)].*side) = {slot};
    }
  };
  add(golden, g, &PlannedPair::golden);
  add(actual, a, &PlannedPair::actual);
  const bool types_differ = g != kNoOperation && a != kNoOperation &&
                            golden.operations[g].level == Level::kOperation &&
                            have_other_types(golden.operations[g], actual.operations[a]);
  for (auto& [key, pair] : pairs) {
    if (several) pair.form.golden_ranks = pair.form.actual_ranks = RankUse::kEach;
    pair.form.fit = Fit::kRepeat;
    if (pair.golden.empty() || pair.actual.empty()) {
      pair.alone = "the other run has no such tensor.";
    } else if (types_differ) {
      pair.certainty = Certainty::kLikely;
      pair.why = "both have the same place in the graph, but their types differ";
    } else {
      pair.why = places.method;
    }
    out.pairs.push_back(std::move(pair));
  }
}

bool same_tensors(const Recording& golden, uint32_t g, const Recording& actual, uint32_t a) {
  const auto keys = [](const Recording& recording, uint32_t operation) {
    std::set<std::string> out;
    for (uint32_t slot = recording.first_slot[operation];
         slot < recording.first_slot[operation + 1]; ++slot)
      out.insert(slot_key(recording, recording.slots[slot]));
    return out;
  };
  return keys(golden, g) == keys(actual, a);
}

}  // namespace

std::optional<PlaceMap> find_places(const Recording& golden, const Recording& actual) {
  PlaceMap out;
  out.ranks = same_ranks(golden, actual);
  if (golden.traits.identity != actual.traits.identity || out.ranks.empty()) return std::nullopt;
  const auto goldens = by_key(golden);
  std::map<std::string_view, uint32_t> same_names;
  for (uint32_t g = 0; golden.traits.identity == Identity::kPlaces && g < golden.operations.size();
       ++g)
    same_names.emplace(golden.operations[g].name, g);
  out.golden_of.assign(actual.operations.size(), kNoOperation);
  const Renaming renaming =
      golden.traits.identity == Identity::kNames ? find_renaming(golden, actual) : Renaming();
  size_t shared = 0;
  size_t operations = 0;
  bool same_types = true;
  bool same_structure = golden.operations.size() == actual.operations.size();
  for (uint32_t a = 0; a < actual.operations.size(); ++a) {
    const Operation& operation = actual.operations[a];
    if (operation.level == Level::kOperation) ++operations;
    const auto found = goldens.find(renaming(key_of(actual, operation)));
    if (found == goldens.end()) {
      same_structure = false;
      continue;
    }
    // A graph may have one operation for prompts and another one for words in the same place.
    const auto same = same_names.find(operation.name);
    out.golden_of[a] = same == same_names.end() ? found->second : same->second;
    if (operation.level != Level::kOperation) continue;
    ++shared;
    same_types &= golden.operations[out.golden_of[a]].type == operation.type;
    same_structure &= same_tensors(golden, out.golden_of[a], actual, a);
  }
  if (golden.ranks.size() != actual.ranks.size() &&
      !are_equally_wide(golden, actual, out.golden_of, out.ranks))
    return std::nullopt;
  if (golden.traits.identity == Identity::kNames) {
    const auto golden_operations = static_cast<size_t>(
        std::count_if(golden.operations.begin(), golden.operations.end(),
                      [](const Operation& each) { return each.level == Level::kOperation; }));
    if (!are_enough_names(shared, golden_operations, operations)) return std::nullopt;
    out.method = "by the names of modules";
    return out;
  }
  if (shared == 0 || (!same_types && !same_structure)) return std::nullopt;
  out.method = "by the place in the graph";
  return out;
}

PlannedProgram plan_by_place(const Recording& golden, const Program& golden_program,
                             const Recording& actual, const Program& actual_program,
                             const PlaceMap& places, const std::pair<size_t, size_t>& programs) {
  PlannedProgram out{programs.first, programs.second, {}};
  std::set<uint32_t> used;
  for (const uint32_t top : actual_program.tops) {
    for (uint32_t a = top; a < actual.operations[top].end; ++a) {
      plan_operation(golden, places.golden_of[a], actual, a, places, out);
      if (places.golden_of[a] != kNoOperation) used.insert(places.golden_of[a]);
    }
  }
  for (const uint32_t top : golden_program.tops)
    for (uint32_t g = top; g < golden.operations[top].end; ++g)
      if (!used.contains(g)) plan_operation(golden, g, actual, kNoOperation, places, out);
  return out;
}

}  // namespace ait::match
