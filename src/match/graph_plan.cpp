#include "match/graph_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ait::match {
namespace {

using capture::CompiledGraph;
using capture::Direction;
using capture::kNoOperation;
using capture::Operation;
using capture::Recording;
using capture::SourceOperation;

// Without the name of its graph, which stands before it where there are several.
std::string_view own_name(const Recording& recording, const CompiledGraph& graph,
                          const Operation& operation) {
  std::string_view name = operation.name;
  if (recording.graphs.size() > 1) name.remove_prefix(graph.name.size() + 1);
  return name;
}

std::vector<uint32_t> slots_of(const Recording& recording, uint32_t operation,
                               Direction direction) {
  std::vector<uint32_t> out;
  for (uint32_t slot = recording.first_slot[operation]; slot < recording.first_slot[operation + 1];
       ++slot)
    if (recording.slots[slot].direction == direction) out.push_back(slot);
  return out;
}

// The outputs; the inputs where there are none.
std::vector<uint32_t> shown_slots(const Recording& recording, uint32_t operation) {
  auto out = slots_of(recording, operation, Direction::kOutput);
  return out.empty() ? slots_of(recording, operation, Direction::kInput) : out;
}

PlannedPair each_rank() {
  PlannedPair pair;
  pair.form.golden_ranks = pair.form.actual_ranks = RankUse::kEach;
  return pair;
}

// "Cast_9" of "Cast_9:0"
std::string operation_of(const std::string& source) { return source.substr(0, source.rfind(':')); }

// "add_1-aten.add.Tensor" of "add_1-aten.add.Tensor.OUTPUT.0"
std::string node_of(const std::string& result) {
  constexpr std::string_view kOutput = ".OUTPUT.";
  return result.substr(0, std::min(result.rfind(kOutput), result.size()));
}

// Golden's graph, to be asked by name.
class GoldenIndex {
 public:
  GoldenIndex(const Recording& recording, const CompiledGraph& graph) : recording_(recording) {
    for (uint32_t i = graph.first; i < graph.end; ++i) {
      const Operation& operation = recording.operations[i];
      by_name_.emplace(own_name(recording, graph, operation), i);
      if (operation.parts.size() != 1 || operation.has_more_parts) continue;
      by_part_.emplace(operation.parts[0].name, i);
      for (uint32_t output = 0; output < operation.parts[0].results.size(); ++output)
        if (const std::string& result = operation.parts[0].results[output]; !result.empty())
          by_result_.emplace(result, std::pair(i, output));
    }
  }

  uint32_t named(std::string_view name) const { return find(by_name_, std::string(name)); }
  uint32_t made_of(const std::string& part) const { return find(by_part_, part); }
  uint32_t computing(const std::string& result) const {
    const auto found = by_result_.find(result);
    return found == by_result_.end() ? kNoOperation : found->second.first;
  }

  // The tensor that a result is; nothing where it was not recorded.
  std::optional<uint32_t> slot_of(const std::string& result) const {
    const auto found = by_result_.find(result);
    if (found == by_result_.end()) return std::nullopt;
    for (const uint32_t slot : slots_of(recording_, found->second.first, Direction::kOutput))
      if (recording_.slots[slot].index == found->second.second) return slot;
    return std::nullopt;
  }

 private:
  using Places = std::unordered_map<std::string, uint32_t>;
  static uint32_t find(const Places& places, const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? kNoOperation : found->second;
  }

  const Recording& recording_;
  Places by_name_;
  Places by_part_;
  std::unordered_map<std::string, std::pair<uint32_t, uint32_t>> by_result_;
};

class Planner {
 public:
  Planner(const Recording& golden, const Recording& actual, const GraphPair& pair)
      : golden_(golden), actual_(actual), pair_(pair), index_(golden, golden.graphs[pair.golden]) {}

  GraphPlan run() {
    for (const uint32_t graph : pair_.actual) {
      program_ = &out_.programs.emplace_back(PlannedProgram{pair_.golden, graph, {}});
      const CompiledGraph& compiled = actual_.graphs[graph];
      for (uint32_t a = compiled.first; a < compiled.end; ++a)
        plan(a, own_name(actual_, compiled, actual_.operations[a]));
    }
    program_ = &out_.programs.front();
    const CompiledGraph& compiled = golden_.graphs[pair_.golden];
    for (uint32_t g = compiled.first; g < compiled.end; ++g) leave_golden(g);
    return std::move(out_);
  }

 private:
  void plan(uint32_t a, std::string_view name) {
    const Operation& operation = actual_.operations[a];
    uint32_t same = kNoOperation;
    if (operation.parts.size() == 1 && !operation.has_more_parts)
      same = index_.made_of(operation.parts[0].name);
    if (same == kNoOperation) same = index_.named(name);
    if (same != kNoOperation) return pair_same(a, same);
    if (operation.parts.size() > 1 && is_made_of_golden(operation)) return pair_fused(a);
    if (!operation.parts.empty() && has_results(operation)) return pair_by_results(a);
    if (operation.parts.empty() && operation.is_copy) return pair_with_itself(a);
    leave_actual(a, operation.parts.empty()
                        ? "golden-path has no operation of this name."
                        : "nothing that it computes has a name in golden-path: it is an "
                          "intermediate result, or one that the compiler put in.");
  }

  bool is_made_of_golden(const Operation& operation) const {
    return std::any_of(
        operation.parts.begin(), operation.parts.end(),
        [&](const SourceOperation& part) { return index_.made_of(part.name) != kNoOperation; });
  }

  static bool has_results(const Operation& operation) {
    return std::any_of(operation.parts.begin(), operation.parts.end(),
                       [](const SourceOperation& part) {
                         return std::any_of(part.results.begin(), part.results.end(),
                                            [](const auto& result) { return !result.empty(); });
                       });
  }

  void add(uint32_t golden, uint32_t actual, Certainty certainty, std::string why) {
    PlannedPair pair = each_rank();
    pair.golden = {golden};
    pair.actual = {actual};
    pair.certainty = certainty;
    pair.why = std::move(why);
    golden_done_.insert(golden);
    program_->pairs.push_back(std::move(pair));
  }

  void leave_alone(std::vector<uint32_t> PlannedPair::* side, uint32_t slot, std::string alone,
                   std::string who = {}) {
    PlannedPair pair = each_rank();
    pair.*side = {slot};
    pair.alone = std::move(alone);
    pair.who = std::move(who);
    program_->pairs.push_back(std::move(pair));
  }
  static constexpr auto kGolden = &PlannedPair::golden;
  static constexpr auto kActual = &PlannedPair::actual;

  void leave_actual(uint32_t a, const std::string& why) {
    for (const uint32_t slot : shown_slots(actual_, a)) leave_alone(kActual, slot, why);
  }

  // The same operation on both sides: tensors by their numbers.
  void pair_same(uint32_t a, uint32_t g) {
    const bool same_type = golden_.operations[g].type == actual_.operations[a].type;
    const Certainty certainty = same_type ? Certainty::kCertain : Certainty::kLikely;
    const std::string why =
        same_type ? "both have the same name" : "both have the same name, but their types differ";
    pair_inputs(inputs_by_number(golden_, g), inputs_by_number(actual_, a), certainty, why);
    std::set<uint32_t> golden_left;
    for (const uint32_t slot : slots_of(golden_, g, Direction::kOutput)) golden_left.insert(slot);
    for (const uint32_t slot : slots_of(actual_, a, Direction::kOutput)) {
      const auto found = std::find_if(golden_left.begin(), golden_left.end(), [&](uint32_t other) {
        return golden_.slots[other].index == actual_.slots[slot].index;
      });
      if (found == golden_left.end()) {
        leave_alone(kActual, slot, "golden-path has no such output of it.");
        continue;
      }
      add(*found, slot, certainty, why);
      golden_left.erase(found);
    }
    for (const uint32_t slot : golden_left)
      leave_alone(kGolden, slot, "my-path has no such output of it.");
  }

  // By the number that each has: gaps stay gaps.
  static std::vector<std::optional<uint32_t>> inputs_by_number(const Recording& recording,
                                                               uint32_t operation) {
    std::vector<std::optional<uint32_t>> out;
    constexpr uint32_t kMostGaps = 4096;
    for (const uint32_t slot : slots_of(recording, operation, Direction::kInput)) {
      const uint32_t number = recording.slots[slot].index;
      if (number >= out.size() + kMostGaps) break;
      out.resize(std::max<size_t>(out.size(), number + 1));
      out[number] = slot;
    }
    return out;
  }

  // Inputs are other operations' outputs, and many that one side has became attributes on the other:
  // those without a partner are counted, not shown.
  void pair_inputs(const std::vector<std::optional<uint32_t>>& golden,
                   const std::vector<std::optional<uint32_t>>& actual, Certainty certainty,
                   const std::string& why) {
    for (size_t i = 0; i < std::max(golden.size(), actual.size()); ++i) {
      const auto g = i < golden.size() ? golden[i] : std::nullopt;
      const auto a = i < actual.size() ? actual[i] : std::nullopt;
      if (g && a) add(*g, *a, certainty, why);
      if (g && !a) ++out_.golden_inputs_left;
      if (!g && a) ++out_.actual_inputs_left;
    }
  }

  // One of mine against several of golden's, which it was made of: what goes into them from outside,
  // and what the last of them puts out.
  void pair_fused(uint32_t a) {
    const Operation& operation = actual_.operations[a];
    std::set<std::string> parts;
    for (const SourceOperation& part : operation.parts) parts.insert(part.name);
    std::vector<std::string> sources;
    std::vector<std::optional<uint32_t>> outside;
    uint32_t last = kNoOperation;
    for (const SourceOperation& part : operation.parts) {
      last = index_.made_of(part.name);
      std::vector<uint32_t> inputs;
      if (last != kNoOperation) {
        inputs = slots_of(golden_, last, Direction::kInput);
        inside_.emplace(last, a);
      }
      for (size_t i = 0; i < part.sources.size(); ++i) {
        if (parts.contains(operation_of(part.sources[i]))) continue;
        if (last != kNoOperation && i >= inputs.size()) continue;
        sources.push_back(part.sources[i]);
        outside.push_back(last == kNoOperation ? std::nullopt : std::optional(inputs[i]));
      }
    }
    const auto mine = inputs_by_number(actual_, a);
    // A tensor that two parts read may go in once.
    if (outside.size() > mine.size()) drop_repeated(sources, outside);
    const std::string why = "it is made of operations that golden-path has";
    for (size_t i = 0; i < std::max(outside.size(), mine.size()); ++i) {
      const auto g = i < outside.size() ? outside[i] : std::nullopt;
      const auto m = i < mine.size() ? mine[i] : std::nullopt;
      if (g && m) add(*g, *m, Certainty::kLikely, why + ": the inputs that come from outside");
      if (g && !m) ++out_.golden_inputs_left;
      if (!g && m && i < outside.size())
        leave_alone(
            kActual, *m,
            "golden data missing: golden-path has nothing of an operation that it was made of.");
      if (!g && m && i >= outside.size()) ++out_.actual_inputs_left;
    }
    const auto outputs = slots_of(actual_, a, Direction::kOutput);
    if (last == kNoOperation || operation.has_more_parts) {
      for (const uint32_t slot : outputs)
        operation.has_more_parts
            ? leave_alone(kActual, slot,
                          "golden data missing: its name does not tell all that it was made of.")
            : leave_alone(kActual, slot,
                          "golden data missing: golden-path lacks the last operation that it was "
                          "made of.",
                          operation.parts.back().name);
      return;
    }
    const auto goldens = slots_of(golden_, last, Direction::kOutput);
    for (size_t i = 0; i < outputs.size(); ++i)
      i < goldens.size()
          ? add(goldens[i], outputs[i], Certainty::kCertain, why + ": what the last puts out")
          : leave_alone(kActual, outputs[i], "golden-path has no such output of it.");
  }

  static void drop_repeated(std::vector<std::string>& sources,
                            std::vector<std::optional<uint32_t>>& slots) {
    std::set<std::string> seen;
    size_t kept = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!seen.insert(sources[i]).second) continue;
      slots[kept++] = slots[i];
    }
    slots.resize(kept);
  }

  // The first part says what goes in, the last what comes out.
  void pair_by_results(uint32_t a) {
    const Operation& operation = actual_.operations[a];
    const bool fused = operation.parts.size() > 1;
    bool any = false;
    uint32_t node = kNoOperation;
    for (const std::string& result : operation.parts.front().results)
      if (node == kNoOperation) node = index_.computing(result);
    if (node != kNoOperation) {
      const auto before = program_->pairs.size();
      pair_inputs(inputs_by_number(golden_, node), inputs_by_number(actual_, a), Certainty::kLikely,
                  "by its place among the inputs of the node");
      any = program_->pairs.size() > before;
    }
    const std::vector<std::string>& results = operation.parts.back().results;
    for (const uint32_t slot : slots_of(actual_, a, Direction::kOutput)) {
      const uint32_t number = actual_.slots[slot].index;
      const std::string result = number < results.size() ? results[number] : std::string();
      if (const auto golden = index_.slot_of(result)) {
        add(*golden, slot, operation.has_more_parts ? Certainty::kLikely : Certainty::kCertain,
            "the graph names it " + result);
        any = true;
      } else {
        result.empty()
            ? leave_alone(kActual, slot,
                          "nothing of golden-path has its name: it is an intermediate result.")
            : leave_alone(kActual, slot, "golden-path lacks the node that it computes.",
                          node_of(result));
      }
    }
    if (any) ++out_.by_results;
    if (!fused) return;
    for (const SourceOperation& part : operation.parts)
      for (const std::string& result : part.results)
        if (const uint32_t inner = index_.computing(result); inner != kNoOperation)
          inside_.emplace(inner, a);
  }

  void pair_with_itself(uint32_t a) {
    const auto inputs = slots_of(actual_, a, Direction::kInput);
    const auto outputs = slots_of(actual_, a, Direction::kOutput);
    for (size_t i = 0; i < outputs.size(); ++i) {
      PlannedPair pair = each_rank();
      pair.actual = {outputs[i]};
      if (i < inputs.size()) {
        pair.golden = {inputs[i]};
        pair.golden_is_mine = true;
        pair.why = "the compiler added it: its input is compared with its output";
      } else {
        pair.alone = "golden-path has no operation of this name.";
      }
      program_->pairs.push_back(std::move(pair));
    }
  }

  void leave_golden(uint32_t g) {
    const auto inside = inside_.find(g);
    for (const uint32_t slot : shown_slots(golden_, g)) {
      if (golden_done_.contains(slot)) continue;
      inside == inside_.end()
          ? leave_alone(kGolden, slot,
                        "nothing of my-path has its name: it was fused, folded or left out.")
          : leave_alone(kGolden, slot, "it is computed inside a fused operation of my-path.",
                        actual_.operations[inside->second].name);
    }
  }

  const Recording& golden_;
  const Recording& actual_;
  const GraphPair& pair_;
  GoldenIndex index_;
  GraphPlan out_;
  PlannedProgram* program_ = nullptr;
  std::set<uint32_t> golden_done_;                 // slots that are in some pair
  std::unordered_map<uint32_t, uint32_t> inside_;  // operations that one of mine has swallowed
};

}  // namespace

GraphPlan plan_graphs(const Recording& golden, const Recording& actual, const GraphPair& pair) {
  return Planner(golden, actual, pair).run();
}

PlannedProgram plan_lonely_graph(const Recording& recording, uint32_t graph, bool is_golden) {
  PlannedProgram out{is_golden ? graph : kNoProgram, is_golden ? kNoProgram : graph, {}};
  const CompiledGraph& compiled = recording.graphs[graph];
  for (uint32_t i = compiled.first; i < compiled.end; ++i)
    for (const uint32_t slot : shown_slots(recording, i)) {
      PlannedPair pair = each_rank();
      (is_golden ? pair.golden : pair.actual) = {slot};
      pair.alone = "the other run has no such graph.";
      out.pairs.push_back(std::move(pair));
    }
  return out;
}

}  // namespace ait::match
