#include "match/program.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace ait::match {
namespace {

using capture::kNoOperation;
using capture::Level;
using capture::Operation;
using capture::Recording;

std::vector<uint32_t> children_of(const Recording& recording, uint32_t parent) {
  std::vector<uint32_t> children;
  for (uint32_t i = parent + 1; i < recording.operations[parent].end;
       i = recording.operations[i].end)
    if (recording.operations[i].level == Level::kOperation) children.push_back(i);
  return children;
}

std::vector<uint32_t> tops_of(const Recording& recording) {
  std::vector<uint32_t> tops;
  for (uint32_t i = 0; i < recording.operations.size(); i = recording.operations[i].end)
    tops.push_back(i);
  return tops;
}

size_t size_of(const Recording& recording, uint32_t operation) {
  return recording.operations[operation].end - operation;
}

bool is_leaf(const Recording& recording, uint32_t operation) {
  return children_of(recording, operation).empty();
}

// Depths and tensors of a subtree as text.
void append_structure(const Recording& recording, uint32_t root, std::string& out) {
  std::vector<uint32_t> ends;
  for (uint32_t i = root; i < recording.operations[root].end; ++i) {
    if (recording.operations[i].level != Level::kOperation) continue;
    while (!ends.empty() && i >= ends.back()) ends.pop_back();
    out += std::to_string(ends.size()) + ":";
    for (uint32_t slot = recording.first_slot[i]; slot < recording.first_slot[i + 1]; ++slot) {
      const capture::Slot& s = recording.slots[slot];
      // An operation may read its inputs from elsewhere, and a fault may be just that.
      if (s.direction == capture::Direction::kInput && !recording.traits.inputs_are_values)
        continue;
      out += s.direction == capture::Direction::kInput ? 'i' : 'o';
      if (s.moment == capture::Moment::kBefore) out += 'b';
      out += std::to_string(s.index) + (s.call > 0 ? "#" + std::to_string(s.call) : "") + ",";
    }
    ends.push_back(recording.operations[i].end);
  }
  out += ";";
}

// Siblings in a row that look like one another: the layers of a model.
struct Run {
  std::vector<uint32_t> members;
  size_t total = 0;  // operations in them
};

// The best run among siblings. Members have children and the same structure, or the same type.
std::vector<Run> runs_in(const Recording& recording, const std::vector<uint32_t>& siblings) {
  std::vector<Run> runs;
  std::string last_structure;
  for (size_t i = 0; i < siblings.size(); ++i) {
    const uint32_t at = siblings[i];
    if (is_leaf(recording, at)) {
      last_structure.clear();
      continue;
    }
    std::string structure;
    append_structure(recording, at, structure);
    const bool continues =
        !runs.empty() && i > 0 && runs.back().members.back() == siblings[i - 1] &&
        (structure == last_structure ||
         (!recording.operations[at].type.empty() &&
          recording.operations[at].type == recording.operations[siblings[i - 1]].type));
    if (!continues) runs.emplace_back();
    runs.back().members.push_back(at);
    runs.back().total += size_of(recording, at);
    last_structure = std::move(structure);
  }
  return runs;
}

// Of a forest: the run that holds most operations, at least two members and half of everything.
Run find_layers(const Recording& recording, const std::vector<uint32_t>& tops) {
  size_t everything = 0;
  for (const uint32_t top : tops) everything += size_of(recording, top);
  Run best;
  const auto consider = [&](const std::vector<uint32_t>& siblings) {
    for (Run& run : runs_in(recording, siblings))
      if (run.members.size() >= 2 && run.total > best.total) best = std::move(run);
  };
  consider(tops);
  for (const uint32_t top : tops)
    for (uint32_t i = top; i < recording.operations[top].end; ++i)
      if (!is_leaf(recording, i)) consider(children_of(recording, i));
  return 2 * best.total >= everything ? best : Run{};
}

void add_subtree(const Recording& recording, uint32_t root, std::vector<uint32_t>& out) {
  for (uint32_t i = root; i < recording.operations[root].end; ++i)
    if (recording.operations[i].level == Level::kOperation) out.push_back(i);
}

// The sum of what goes into a layer and what it computes is recorded as an input, or not at all.
void add_what_flows_in(const Recording& recording, Program& program) {
  if (!recording.traits.inputs_are_values || program.layers.empty()) return;
  for (const capture::Slot& slot : recording.slots)
    if (slot.direction == capture::Direction::kInput) return;
  for (size_t i = 1; i < program.layers.size(); ++i)
    program.layers[i].before = {program.layers[i - 1].operations.front()};
  for (const uint32_t operation : program.outside.operations)
    if (operation < program.layers[0].operations.front() && is_leaf(recording, operation))
      program.layers[0].before.push_back(operation);
}

Program program_of(const Recording& recording, std::vector<uint32_t> tops) {
  Program program;
  std::sort(tops.begin(), tops.end());
  program.tops = std::move(tops);
  const Run run = find_layers(recording, program.tops);
  for (const uint32_t member : run.members)
    add_subtree(recording, member, program.layers.emplace_back().operations);
  for (const uint32_t top : program.tops) {
    for (uint32_t i = top; i < recording.operations[top].end;) {
      if (std::binary_search(run.members.begin(), run.members.end(), i)) {
        i = recording.operations[i].end;
        continue;
      }
      if (recording.operations[i].level == Level::kOperation)
        program.outside.operations.push_back(i);
      ++i;
    }
  }
  add_what_flows_in(recording, program);
  return program;
}

// As topologies of models say it.
std::vector<std::vector<uint32_t>> tops_by_model(const Recording& recording,
                                                 const std::vector<uint32_t>& tops) {
  std::vector<std::vector<uint32_t>> out;
  for (const std::vector<uint64_t>& ids : recording.model_tops) {
    std::vector<uint32_t> members;
    for (const uint32_t top : tops) {
      const Operation& operation = recording.operations[top];
      if (operation.ids.size() == 1 &&
          std::find(ids.begin(), ids.end(), operation.ids[0]) != ids.end())
        members.push_back(top);
    }
    if (!members.empty()) out.push_back(std::move(members));
  }
  // What no topology speaks of goes to the graph that was set up before it; what was set up before
  // all graphs serves all of them.
  if (out.size() < 2) return out;
  const uint32_t first = out[0].front();
  for (const uint32_t top : tops) {
    size_t nearest = 0;
    bool known = false;
    for (size_t i = 0; i < out.size(); ++i) {
      known |= std::find(out[i].begin(), out[i].end(), top) != out[i].end();
      if (out[i].front() < top) nearest = i;
    }
    if (known) continue;
    if (top > first) out[nearest].push_back(top);
    for (auto& group : out)
      if (top < first) group.push_back(top);
  }
  return out;
}

// Without topologies: two runs of equally many layers are two graphs. What stands between them is
// the end of the first and the beginning of the second; the second graph's own end says how much of
// it is which.
std::vector<std::vector<uint32_t>> tops_by_runs(const Recording& recording,
                                                const std::vector<uint32_t>& tops) {
  std::vector<Run> runs = runs_in(recording, tops);
  size_t largest = 0;
  for (const Run& run : runs) largest = std::max(largest, run.total);
  // A run is a model's layers if it is about as large as the largest.
  std::erase_if(runs, [&](const Run& run) { return 2 * run.total < largest; });
  if (runs.size() != 2 || runs[0].members.size() != runs[1].members.size()) return {tops};
  const auto position = [&](uint32_t top) {
    return static_cast<size_t>(std::lower_bound(tops.begin(), tops.end(), top) - tops.begin());
  };
  const size_t head = position(runs[0].members.front());
  const size_t between_begin = position(runs[0].members.back()) + 1;
  const size_t between_end = position(runs[1].members.front());
  const size_t tail = tops.size() - position(runs[1].members.back()) - 1;
  const size_t between = between_end - between_begin;
  size_t ends = between;  // how many of those between belong to the first graph
  if (between == tail + head || between > tail) ends = tail > 0 || between > head ? tail : between;
  if (between == tail) ends = between;
  std::vector<uint32_t> first(tops.begin(),
                              tops.begin() + static_cast<ptrdiff_t>(between_begin + ends));
  std::vector<uint32_t> second(tops.begin() + static_cast<ptrdiff_t>(between_begin + ends),
                               tops.end());
  // A graph without a beginning or an end of its own uses the other's.
  if (ends == between)
    second.insert(second.begin(), tops.begin(), tops.begin() + static_cast<ptrdiff_t>(head));
  if (tail == 0)
    second.insert(second.end(), tops.begin() + static_cast<ptrdiff_t>(between_begin),
                  tops.begin() + static_cast<ptrdiff_t>(between_begin + ends));
  return {std::move(first), std::move(second)};
}

}  // namespace

bool Program::is_shared(uint32_t top) const {
  return std::find(shared.begin(), shared.end(), top) != shared.end();
}

std::optional<uint32_t> Program::layer_of(const Recording& recording, uint32_t operation) const {
  // Layers stand one after the other, each a subtree of operations.
  const auto after = std::upper_bound(
      layers.begin(), layers.end(), operation,
      [](uint32_t wanted, const Segment& layer) { return wanted < layer.operations.front(); });
  if (after == layers.begin()) return std::nullopt;
  const uint32_t root = std::prev(after)->operations.front();
  if (operation >= recording.operations[root].end) return std::nullopt;
  return static_cast<uint32_t>(after - layers.begin() - 1);
}

uint32_t top_of(const Recording& recording, uint32_t operation) {
  while (recording.operations[operation].parent != kNoOperation)
    operation = recording.operations[operation].parent;
  return operation;
}

std::string structure_of(const Recording& recording, const Segment& segment) {
  std::string out;
  for (size_t i = 0; i < segment.operations.size();) {
    const uint32_t root = segment.operations[i];
    append_structure(recording, root, out);
    while (i < segment.operations.size() && segment.operations[i] < recording.operations[root].end)
      ++i;
  }
  for (const uint32_t operation : segment.before)
    out +=
        "<" + std::to_string(recording.first_slot[operation + 1] - recording.first_slot[operation]);
  return out;
}

std::vector<Program> find_programs(const Recording& recording) {
  const std::vector<uint32_t> tops = tops_of(recording);
  std::vector<std::vector<uint32_t>> groups;
  if (recording.traits.rounds == capture::Traits::Rounds::kCalls) {
    groups = {tops};
  } else {
    groups = tops_by_model(recording, tops);
    if (groups.size() < 2) groups = tops_by_runs(recording, tops);
  }
  std::vector<Program> programs;
  programs.reserve(groups.size());
  for (const auto& group : groups) programs.push_back(program_of(recording, group));
  for (Program& program : programs)
    for (const uint32_t top : program.tops)
      for (const Program& other : programs)
        if (&other != &program && std::binary_search(other.tops.begin(), other.tops.end(), top) &&
            !program.is_shared(top))
          program.shared.push_back(top);
  return programs;
}

}  // namespace ait::match
