#include "match/program.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::Level;
using capture::Operation;
using capture::Recording;

using Tops = std::vector<uint32_t>;  // top-level operations of one graph

bool contains(const Tops& tops, uint32_t top) {
  return std::find(tops.begin(), tops.end(), top) != tops.end();
}

Tops tops_of(const Recording& recording) {
  Tops tops;
  for (uint32_t i = 0; i < recording.operations.size(); i = recording.operations[i].end)
    tops.push_back(i);
  return tops;
}

// Operations that no topology lists: what was set up before all graphs serves all of them (a shared
// word embedding), anything else belongs to the graph that was set up before it.
void add_unlisted(const Tops& tops, std::vector<Tops>& graphs) {
  const uint32_t first = graphs[0].front();
  for (const uint32_t top : tops) {
    if (std::any_of(graphs.begin(), graphs.end(),
                    [&](const Tops& graph) { return contains(graph, top); }))
      continue;
    if (top < first) {
      for (Tops& graph : graphs) graph.push_back(top);
      continue;
    }
    size_t before = 0;
    for (size_t i = 0; i < graphs.size(); ++i)
      if (graphs[i].front() < top) before = i;
    graphs[before].push_back(top);
  }
}

// The graphs as topologies of models list them.
std::vector<Tops> graphs_by_topology(const Recording& recording, const Tops& tops) {
  std::vector<Tops> graphs;
  for (const std::vector<uint64_t>& ids : recording.model_tops) {
    Tops graph;
    for (const uint32_t top : tops) {
      const Operation& operation = recording.operations[top];
      if (operation.ids.size() == 1 &&
          std::find(ids.begin(), ids.end(), operation.ids[0]) != ids.end())
        graph.push_back(top);
    }
    if (!graph.empty()) graphs.push_back(std::move(graph));
  }
  if (graphs.size() >= 2) add_unlisted(tops, graphs);
  return graphs;
}

// How many of the operations between the layers of two graphs end the first graph; the others begin
// the second one. `head` stand before the first layers and `tail` after the second ones: the end of
// the second graph shows how a graph ends.
//
//     embed L L norm lm embed L L norm lm   head 1, between 3, tail 2: norm and lm end the first
//     embed L L norm lm       L L norm lm   head 1, between 2, tail 2: the same; embed is shared
//     embed L L norm          L L           head 1, between 1, tail 0: norm is shared, too
size_t ends_of_first(size_t head, size_t between, size_t tail) {
  if (between <= tail || (tail == 0 && between <= head)) return between;
  return tail;
}

// Without topologies: two series of equally many layers are two graphs.
std::vector<Tops> graphs_by_repetition(const Recording& recording, const Tops& tops) {
  std::vector<Series> all = find_layer_series(recording, tops);
  size_t largest = 0;
  for (const Series& series : all) largest = std::max(largest, series.operations);
  // A series is a model's layers if it is about as large as the largest one.
  std::erase_if(all, [&](const Series& series) { return 2 * series.operations < largest; });
  if (all.size() != 2 || all[0].members.size() != all[1].members.size()) return {tops};
  // Beside a single layer its head may be that large.
  if (all[0].members.size() == 1 &&
      4 * std::min(all[0].operations, all[1].operations) < 3 * largest)
    return {tops};

  const auto at = [&](uint32_t top) { return std::lower_bound(tops.begin(), tops.end(), top); };
  const auto layers_1 = at(all[0].members.front());
  const auto layers_1_end = at(all[0].members.back()) + 1;
  const auto layers_2 = at(all[1].members.front());
  const auto layers_2_end = at(all[1].members.back()) + 1;
  const auto count = [](auto first, auto last) { return static_cast<size_t>(last - first); };
  const size_t between = count(layers_1_end, layers_2);
  const size_t tail = count(layers_2_end, tops.end());
  const size_t ends = ends_of_first(count(tops.begin(), layers_1), between, tail);
  const auto second_begin = layers_1_end + static_cast<ptrdiff_t>(ends);

  Tops first(tops.begin(), second_begin);
  Tops second(second_begin, tops.end());
  // A graph without a beginning or an end of its own uses the other's.
  if (ends == between) second.insert(second.end(), tops.begin(), layers_1);
  if (tail == 0) second.insert(second.end(), layers_1_end, second_begin);
  return {std::move(first), std::move(second)};
}

std::vector<Tops> graphs_of(const Recording& recording) {
  Tops tops = tops_of(recording);
  if (recording.traits.rounds == capture::Traits::Rounds::kCalls) return {std::move(tops)};
  auto graphs = graphs_by_topology(recording, tops);
  const bool is_told =
      graphs.size() >= 2 || (graphs.size() == 1 && graphs[0].size() == tops.size());
  return is_told ? graphs : graphs_by_repetition(recording, tops);
}

// A residual addition between modules leaves a trace only as an input of the next module. Where
// inputs were not recorded, its result has to be made of outputs: of what a module in the layer put
// out and of what went into the layer, the output of the layer before it. So that becomes a part of
// the segment. What went into the first layer is an output of some leaf before it.
void add_what_flows_in(const Recording& recording, Program& program) {
  if (!recording.traits.inputs_are_values || program.layers.empty()) return;
  for (const capture::Slot& slot : recording.slots)
    if (slot.direction == Direction::kInput) return;
  for (size_t i = 1; i < program.layers.size(); ++i)
    program.layers[i].before = {program.layers[i - 1].operations.front()};
  Segment& first = program.layers[0];
  for (const uint32_t operation : program.outside.operations)
    if (operation < first.operations.front() && is_leaf(recording, operation))
      first.before.push_back(operation);
}

Program program_of(const Recording& recording, Tops tops) {
  Program program;
  std::sort(tops.begin(), tops.end());
  program.tops = std::move(tops);
  const std::vector<uint32_t> layers = find_layers(recording, program.tops).members;
  const auto is_operation = [&](uint32_t i) {
    return recording.operations[i].level == Level::kOperation;
  };
  for (const uint32_t layer : layers) {
    Segment& segment = program.layers.emplace_back();
    for (uint32_t i = layer; i < recording.operations[layer].end; ++i)
      if (is_operation(i)) segment.operations.push_back(i);
  }
  for (const uint32_t top : program.tops) {
    for (uint32_t i = top; i < recording.operations[top].end;) {
      const bool is_layer = std::binary_search(layers.begin(), layers.end(), i);
      if (!is_layer && is_operation(i)) program.outside.operations.push_back(i);
      i = is_layer ? recording.operations[i].end : i + 1;
    }
  }
  add_what_flows_in(recording, program);
  return program;
}

// The compiled graphs that ran in a round, on whatever rank.
std::vector<uint32_t> graphs_in(const Recording& recording, size_t round) {
  std::vector<uint32_t> graphs;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank)
    if (const auto kept = recording.kept.find(rank * recording.rounds.size() + round);
        kept != recording.kept.end())
      for (const auto& unit : kept->second) graphs.push_back(unit.unit);
  std::sort(graphs.begin(), graphs.end());
  graphs.erase(std::unique(graphs.begin(), graphs.end()), graphs.end());
  return graphs;
}

std::vector<std::vector<uint32_t>> sets_of_graphs(const Recording& recording) {
  std::vector<std::vector<uint32_t>> sets;
  if (recording.traits.rounds == capture::Traits::Rounds::kGraphs) {
    for (uint32_t graph = 0; graph < recording.graphs.size(); ++graph) sets.push_back({graph});
    return sets;
  }
  for (size_t round = 0; round < recording.rounds.size(); ++round)
    if (auto set = graphs_in(recording, round);
        std::find(sets.begin(), sets.end(), set) == sets.end())
      sets.push_back(std::move(set));
  return sets;
}

std::vector<Program> programs_of_graphs(const Recording& recording) {
  std::vector<Program> programs;
  for (auto& set : sets_of_graphs(recording)) {
    Tops tops;
    for (const uint32_t graph : set)
      for (uint32_t i = recording.graphs[graph].first; i < recording.graphs[graph].end; ++i)
        tops.push_back(i);
    programs.push_back(program_of(recording, std::move(tops)));
    programs.back().graphs = std::move(set);
  }
  return programs;
}

std::vector<Program> programs_of(const Recording& recording) {
  if (!recording.graphs.empty()) return programs_of_graphs(recording);
  std::vector<Program> programs;
  for (Tops& graph : graphs_of(recording))
    programs.push_back(program_of(recording, std::move(graph)));
  return programs;
}

std::vector<Program> with_shared(std::vector<Program> programs) {
  for (Program& program : programs)
    for (const uint32_t top : program.tops)
      for (const Program& other : programs)
        if (&other != &program && std::binary_search(other.tops.begin(), other.tops.end(), top) &&
            !program.is_shared(top))
          program.shared.push_back(top);
  return programs;
}

}  // namespace

bool Program::is_shared(uint32_t top) const { return contains(shared, top); }

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

std::string numbers_in(const Recording& recording, const Segment& layer) {
  if (recording.traits.types != capture::Traits::Types::kModules || layer.operations.empty())
    return {};
  const size_t own = recording.operations[layer.operations.front()].name.size();
  std::string out;
  for (const uint32_t operation : layer.operations) {
    const std::string& name = recording.operations[operation].name;
    for (size_t dot = name.find('.', own); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      const size_t end = std::min(name.find('.', dot + 1), name.size());
      const std::string_view word = std::string_view(name).substr(dot + 1, end - dot - 1);
      if (word.find_first_not_of("0123456789") == std::string_view::npos) out.append(word) += ' ';
    }
  }
  return out;
}

std::vector<Program> find_programs(const Recording& recording) {
  return with_shared(programs_of(recording));
}

std::vector<Program> programs_like(const Recording& recording,
                                   const std::vector<uint32_t>& other_of,
                                   const std::vector<Program>& others) {
  std::vector<Tops> graphs(others.size());
  std::vector<size_t> before = {0};  // the programs of the operation before
  for (const uint32_t top : tops_of(recording)) {
    std::vector<size_t> in;
    for (size_t i = 0; i < others.size(); ++i)
      if (other_of[top] != kNoOperation && contains(others[i].tops, other_of[top])) in.push_back(i);
    if (in.empty()) in = before;
    for (const size_t i : in) graphs[i].push_back(top);
    before = std::move(in);
  }
  std::vector<Program> programs;
  programs.reserve(graphs.size());
  for (Tops& graph : graphs) programs.push_back(program_of(recording, std::move(graph)));
  return with_shared(std::move(programs));
}

size_t program_in(const Recording& recording, const std::vector<Program>& programs, size_t round) {
  if (recording.graphs.empty()) return 0;
  const std::vector<uint32_t> graphs = graphs_in(recording, round);
  const auto found = std::find_if(programs.begin(), programs.end(),
                                  [&](const Program& program) { return program.graphs == graphs; });
  return found == programs.end() ? 0 : static_cast<size_t>(found - programs.begin());
}

}  // namespace ait::match
