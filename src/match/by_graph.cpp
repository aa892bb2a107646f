#include "match/by_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "match/graph_plan.h"
#include "match/plan.h"

namespace ait::match {
namespace {

using capture::Recording;

constexpr size_t kNamed = 8;  // of tokens, in a message

using RankPair = std::pair<size_t, size_t>;  // golden's and mine

// The rounds that a rank has of each graph.
using Rounds = std::map<uint32_t, std::set<size_t>>;

Rounds rounds_on(const Recording& recording, size_t rank) {
  Rounds out;
  for (size_t round = 0; round < recording.rounds.size(); ++round)
    if (const auto kept = recording.kept.find(rank * recording.rounds.size() + round);
        kept != recording.kept.end())
      for (const auto& unit : kept->second) out[unit.unit].insert(round);
  return out;
}

std::vector<uint32_t> graphs_of(const Rounds& rounds) {
  std::vector<uint32_t> out;
  for (const auto& [graph, ignored] : rounds) out.push_back(graph);
  return out;
}

// Graphs in the order in which they were compiled: those that one compiled graph was cut into, and
// so have its number, together.
using Groups = std::vector<std::vector<uint32_t>>;

Groups groups_of(const Recording& recording, const std::vector<uint32_t>& graphs) {
  Groups out;
  for (const uint32_t graph : graphs) {
    const auto number = recording.graphs[graph].number;
    if (number && !out.empty() && recording.graphs[out.back().front()].number == number)
      out.back().push_back(graph);
    else
      out.push_back({graph});
  }
  return out;
}

std::optional<uint64_t> number_of(const Recording& recording, const std::vector<uint32_t>& group) {
  return recording.graphs[group.front()].number;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < kNamed; ++i) out += (i > 0 ? ", " : "") + names[i];
  return "[" + out + (names.size() > kNamed ? ", …]" : "]");
}

class ByGraph {
 public:
  ByGraph(SharedRecording golden, SharedRecording actual, const AutomaticOptions& options)
      : golden_(std::move(golden)), actual_(std::move(actual)), options_(options) {}

  Result<AutomaticPairs> run() {
    if (auto paired = pair_ranks(); !paired) return fail(paired.error());
    for (const RankPair& ranks : ranks_) add_rank(ranks);
    for (const size_t rank : golden_alone_) add_lonely_rank(rank, true);
    for (const size_t rank : actual_alone_) add_lonely_rank(rank, false);
    Alignment alignment;
    for (auto& [key, step] : steps_)
      (step.alone.empty() ? alignment.steps : alignment.alone).push_back(std::move(step));
    if (alignment.steps.empty()) return fail(no_common_round());
    std::vector<PlannedProgram> planned = plan(alignment);
    const bool by_results = by_results_ > 0;
    auto out = carry_out(golden_, actual_, find_programs(*golden_), find_programs(*actual_),
                         std::move(alignment), std::move(planned), options_.level);
    out.method = by_results ? "by the names that the graph's text gives to tensors"
                            : "by the names of operations";
    out.notes.insert(out.notes.begin(), notes_.begin(), notes_.end());
    return out;
  }

 private:
  // Ranks by their numbers. A run that says no number has one rank; what it is compared with, too.
  Result<void> pair_ranks() {
    const auto& golden = golden_->ranks;
    const auto& actual = actual_->ranks;
    for (size_t g = 0; g < golden.size(); ++g)
      for (size_t a = 0; a < actual.size(); ++a)
        if (golden[g].device == actual[a].device) ranks_.emplace_back(g, a);
    if (golden.size() == 1 && actual.size() == 1) ranks_ = {{0, 0}};
    if (ranks_.empty()) {
      const auto names = [](const auto& ranks) {
        std::vector<std::string> out;
        out.reserve(ranks.size());
        for (const capture::Rank& rank : ranks) out.push_back(rank.device);
        return list_of(out);
      };
      return fail(Error(ErrorCode::kUsage)
                  << "no common rank: golden has " << names(golden) << " and my side "
                  << names(actual) << "; give the folders of two ranks that correspond");
    }
    std::set<size_t> golden_done;
    std::set<size_t> actual_done;
    for (const auto& [g, a] : ranks_) {
      golden_done.insert(g);
      actual_done.insert(a);
    }
    for (size_t g = 0; g < golden.size(); ++g)
      if (!golden_done.contains(g)) golden_alone_.push_back(g);
    for (size_t a = 0; a < actual.size(); ++a)
      if (!actual_done.contains(a)) actual_alone_.push_back(a);
    return {};
  }

  void add_rank(const RankPair& ranks) {
    const Rounds golden = rounds_on(*golden_, ranks.first);
    const Rounds actual = rounds_on(*actual_, ranks.second);
    std::set<uint32_t> golden_done;
    std::set<uint32_t> actual_done;
    for (const GraphPair& pair : pair_graphs(graphs_of(golden), graphs_of(actual))) {
      golden_done.insert(pair.golden);
      for (const uint32_t a : pair.actual) {
        actual_done.insert(a);
        add_rounds(pair.golden, golden.at(pair.golden), a, actual.at(a), ranks);
      }
      if (std::find_if(pairs_.begin(), pairs_.end(), [&](const GraphPair& known) {
            return known.golden == pair.golden && known.actual == pair.actual;
          }) == pairs_.end())
        pairs_.push_back(pair);
    }
    for (const auto& [graph, rounds] : golden)
      if (!golden_done.contains(graph))
        add_lonely(graph, rounds, true, ranks, "my-path has no graph that corresponds to its own.");
    for (const auto& [graph, rounds] : actual)
      if (!actual_done.contains(graph))
        add_lonely(graph, rounds, false, ranks,
                   "golden-path has no graph that corresponds to its own.");
  }

  void add_lonely_rank(size_t rank, bool is_golden) {
    const Recording& recording = is_golden ? *golden_ : *actual_;
    for (const auto& [graph, rounds] : rounds_on(recording, rank))
      add_lonely(graph, rounds, is_golden, {rank, rank},
                 std::string(is_golden ? "my-path" : "golden-path") + " has no rank " +
                     recording.ranks[rank].device + ".");
  }

  // By number where both have the same; in their order where there are as many; else by the numbers
  // that both have. Counters of two processes may begin differently.
  std::vector<GraphPair> pair_graphs(const std::vector<uint32_t>& golden_graphs,
                                     const std::vector<uint32_t>& actual_graphs) {
    const Groups golden = groups_of(*golden_, golden_graphs);
    const Groups actual = groups_of(*actual_, actual_graphs);
    std::map<uint64_t, size_t> by_number;
    for (size_t i = 0; i < golden.size(); ++i)
      if (const auto number = number_of(*golden_, golden[i])) by_number.emplace(*number, i);
    std::vector<std::pair<size_t, size_t>> same;
    for (size_t i = 0; i < actual.size(); ++i)
      if (const auto number = number_of(*actual_, actual[i]))
        if (const auto found = by_number.find(*number); found != by_number.end())
          same.emplace_back(found->second, i);
    const bool all_same = same.size() == golden.size() && same.size() == actual.size();
    const bool by_order = !all_same && (golden.size() == actual.size() || same.empty());
    if (by_order) {
      same.clear();
      for (size_t i = 0; i < std::min(golden.size(), actual.size()); ++i) same.emplace_back(i, i);
      if (golden.size() + actual.size() > 2)
        note("graphs have other numbers in the two runs and are paired in their order");
    }
    if (golden.size() != actual.size())
      note("golden has " + std::to_string(golden.size()) + " graphs and my side " +
           std::to_string(actual.size()));
    std::vector<GraphPair> out;
    for (const auto& [g, a] : same)
      // Golden's parts of a graph are paired with mine one by one; one of golden's with all of mine.
      if (golden[g].size() == 1) {
        out.push_back({golden[g].front(), actual[a]});
      } else {
        for (size_t i = 0; i < std::min(golden[g].size(), actual[a].size()); ++i)
          out.push_back({golden[g][i], {actual[a][i]}});
      }
    return out;
  }

  void note(const std::string& text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
  }

  // Executions by token, or as a person wrote.
  void add_rounds(uint32_t g, const std::set<size_t>& golden, uint32_t a,
                  const std::set<size_t>& actual, const RankPair& ranks) {
    std::map<std::string, std::string> map(options_.token_map.begin(), options_.token_map.end());
    std::map<std::string, size_t> mine;
    for (const size_t round : actual) mine.emplace(actual_->rounds[round], round);
    std::set<size_t> done;
    for (const size_t round : golden) {
      std::string token = golden_->rounds[round];
      if (!map.empty()) {
        const auto mapped = map.find(token);
        if (mapped == map.end()) continue;
        token = mapped->second;
      }
      const auto found = mine.find(token);
      if (found == mine.end()) {
        add_lonely(g, {round}, true, ranks, "my-path has nothing of token " + token + ".");
        continue;
      }
      done.insert(found->second);
      Step& step = step_for({g, a, round, found->second, ""});
      step.golden = {g, round, round};
      step.actual = {a, found->second, found->second};
      step.ranks.push_back(ranks);
    }
    if (!map.empty()) return;
    for (const size_t round : actual)
      if (!done.contains(round))
        add_lonely(a, {round}, false, ranks,
                   "golden-path has nothing of token " + actual_->rounds[round] + ".");
  }

  void add_lonely(uint32_t graph, const std::set<size_t>& rounds, bool is_golden,
                  const RankPair& ranks, const std::string& why) {
    for (const size_t round : rounds) {
      Step& step = is_golden ? step_for({graph, kNone, round, kNone, why})
                             : step_for({kNone, graph, kNone, round, why});
      (is_golden ? step.golden : step.actual) = {graph, round, round};
      step.alone = why;
      step.ranks.push_back(ranks);
    }
  }

  // Golden's graph and mine, their rounds, and why one of them is missing.
  using StepKey = std::tuple<size_t, size_t, size_t, size_t, std::string>;
  static constexpr size_t kNone = ~size_t{0};

  Step& step_for(const StepKey& key) {
    const auto [place, is_new] = steps_.try_emplace(key);
    Step& step = place->second;
    if (!is_new) return step;
    const auto& [g, a, golden_round, actual_round, why] = key;
    step.phase_is_known = false;
    step.token =
        golden_round != kNone ? golden_->rounds[golden_round] : actual_->rounds[actual_round];
    step.number = actual_round != kNone ? place_of(*actual_, a, actual_round)
                                        : place_of(*golden_, g, golden_round);
    return step;
  }

  // When an execution was, among all of its run.
  static int64_t place_of(const Recording& recording, size_t graph, size_t round) {
    const Recording::Execution wanted{static_cast<uint32_t>(graph), static_cast<uint32_t>(round)};
    return std::find(recording.executions.begin(), recording.executions.end(), wanted) -
           recording.executions.begin();
  }

  std::vector<PlannedProgram> plan(const Alignment& alignment) {
    std::vector<PlannedProgram> planned;
    size_t golden_inputs = 0;
    size_t actual_inputs = 0;
    for (const GraphPair& pair : pairs_) {
      GraphPlan plan = plan_graphs(*golden_, *actual_, pair);
      golden_inputs += plan.golden_inputs_left;
      actual_inputs += plan.actual_inputs_left;
      by_results_ += plan.by_results;
      std::move(plan.programs.begin(), plan.programs.end(), std::back_inserter(planned));
    }
    std::set<std::pair<bool, size_t>> lonely;
    for (const Step& step : alignment.alone) {
      const bool is_golden = step.actual.round == kNoRound;
      const size_t graph = is_golden ? step.golden.program : step.actual.program;
      if (lonely.emplace(is_golden, graph).second)
        planned.push_back(plan_lonely_graph(is_golden ? *golden_ : *actual_,
                                            static_cast<uint32_t>(graph), is_golden));
    }
    const auto inputs = [&](size_t count, const std::string& whose) {
      if (count == 0) return;
      note(std::to_string(count) + (count == 1 ? " input" : " inputs") +
           " of paired operations of " + whose +
           " have no counterpart and are not compared: what is an input of one side may be "
           "an attribute or a constant of the other");
    };
    inputs(golden_inputs, "golden");
    inputs(actual_inputs, "my side");
    return planned;
  }

  Error no_common_round() const {
    const auto tokens = [](const Recording& recording) { return list_of(recording.rounds); };
    return Error(ErrorCode::kUsage)
           << "golden has the tokens " << tokens(*golden_) << " and my side " << tokens(*actual_)
           << ", but none of them correspond; folders of FX dumps up to PTA 7.1.0 are named after "
              "the token plus one, which is taken into account; say which belong together with "
              "--token-map GOLDEN:MY";
  }

  SharedRecording golden_;
  SharedRecording actual_;
  const AutomaticOptions& options_;
  std::vector<RankPair> ranks_;
  std::vector<size_t> golden_alone_;  // ranks
  std::vector<size_t> actual_alone_;
  std::vector<GraphPair> pairs_;
  std::map<StepKey, Step> steps_;
  size_t by_results_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

bool can_pair_by_graph(const Recording& golden, const Recording& actual) {
  if (golden.graphs.empty() || actual.graphs.empty()) return false;
  std::set<std::string> names;
  const auto each_name = [](const Recording& recording, auto visit) {
    for (const capture::Operation& operation : recording.operations) {
      visit(operation.name.substr(operation.name.rfind('/') + 1));
      for (const capture::SourceOperation& part : operation.parts) {
        visit(part.name);
        for (const std::string& result : part.results) visit(result);
      }
    }
  };
  each_name(golden, [&](const std::string& name) { names.insert(name); });
  bool shared = false;
  each_name(actual,
            [&](const std::string& name) { shared |= !name.empty() && names.contains(name); });
  return shared;
}

Result<AutomaticPairs> pair_by_graph(SharedRecording golden, SharedRecording actual,
                                     const AutomaticOptions& options) {
  return ByGraph(std::move(golden), std::move(actual), options).run();
}

}  // namespace ait::match
