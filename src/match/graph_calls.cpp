#include "match/graph_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace ait::match {
namespace {

using capture::Recording;

// Whether no call of so many executions has a graph twice: a call keeps one of each.
bool can_be_calls(const Recording& recording, size_t executions_each) {
  for (size_t first = 0; first < recording.executions.size(); first += executions_each) {
    std::set<uint32_t> graphs;
    for (size_t i = first; i < first + executions_each; ++i)
      if (!graphs.insert(recording.executions[i].graph).second) return false;
  }
  return true;
}

}  // namespace

void count_calls(Recording& recording, size_t other_rounds) {
  if (recording.traits.rounds != capture::Traits::Rounds::kGraphs) return;
  const size_t executions = recording.executions.size();
  size_t each = 1;
  if (executions > 0 && other_rounds > 0 && executions % other_rounds == 0 &&
      can_be_calls(recording, executions / other_rounds))
    each = executions / other_rounds;

  std::unordered_map<uint64_t, std::vector<Recording::UnitContent>> kept;
  const size_t calls = executions / each;
  for (size_t i = 0; i < executions; ++i) {
    const Recording::Execution& execution = recording.executions[i];
    for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
      const auto found = recording.kept.find(rank * recording.rounds.size() + execution.round);
      if (found == recording.kept.end()) continue;
      for (const auto& unit : found->second)
        if (unit.unit == execution.graph) kept[rank * calls + i / each].push_back(unit);
    }
  }
  for (auto& [key, list] : kept) std::sort(list.begin(), list.end());
  recording.kept = std::move(kept);
  recording.rounds.clear();
  for (size_t call = 0; call < calls; ++call) recording.rounds.push_back(std::to_string(call));
  recording.traits.rounds = capture::Traits::Rounds::kCalls;
}

}  // namespace ait::match
