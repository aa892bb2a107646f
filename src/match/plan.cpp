#include "match/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "match/flow.h"
#include "match/origins.h"
#include "match/padding.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;

struct Entry {
  uint32_t pair;
  uint32_t rank;  // which of them, where each is compared for itself: of Step::ranks, if it has any
  bool operator==(const Entry&) const = default;
};

void sort_unique(std::vector<uint32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Everything the pairs are made of; shared by copies of the function that makes them.
struct Plan {
  SharedRecording golden;
  SharedRecording actual;
  std::vector<Program> golden_programs;
  std::vector<Program> actual_programs;
  std::vector<Step> steps;
  std::vector<PlannedProgram> programs;
  std::vector<std::vector<PlannedOrigin>> origins;  // of each program's pairs; none: not known
  std::vector<std::vector<Entry>> entries;          // those of a program first, in its order
  std::vector<size_t> program_of;                   // [step]
  std::vector<size_t> entries_of;                   // [step]
  std::vector<size_t> first;                        // index of the first pair of each step
  std::vector<std::shared_ptr<const std::vector<bool>>> padding;  // [step]

  // `rank` is of those that are compared each for itself.
  static Subject subject(const Recording& recording, const Program& program, uint32_t slot,
                         RankUse use, size_t rank) {
    const capture::Slot& s = recording.slots[slot];
    Subject out;
    out.name = recording.operations[s.operation].name;
    out.tensor = s.tensor();
    if (use == RankUse::kEach && recording.ranks.size() > 1)
      out.rank = recording.ranks[rank].device;
    out.layer = program.layer_of(recording, s.operation);
    return out;
  }

  // A file whose name would tell when it was written has none.
  std::string missing_text(const Recording& recording, uint32_t slot,
                           const capture::TensorRecord& record) const {
    if (recording.file_names.empty()) return record.path;
    return record.operation + "/" + recording.slots[slot].tensor() +
           (&recording == golden.get() ? " of golden-path" : " of my-path");
  }

  // Golden's rank and mine of an entry.
  static std::pair<size_t, size_t> ranks_of(const Step& step, const Entry& entry) {
    return step.ranks.empty() ? std::pair<size_t, size_t>(entry.rank, entry.rank)
                              : step.ranks[entry.rank];
  }

  bool has(bool is_golden, const Step& step, size_t rank, uint32_t slot) const {
    const Recording& recording = is_golden ? *golden : *actual;
    const auto round =
        round_of({recording, is_golden ? golden_programs : actual_programs},
                 is_golden ? step.golden : step.actual, recording.slots[slot].operation);
    return round && recording.has(rank, *round, slot);
  }

  Side side(const Recording& recording, const std::vector<Program>& its_programs,
            const SideStep& step, const std::vector<uint32_t>& slots, const Transform& transform,
            RankUse use, size_t rank, std::string& missing) const {
    Side out;
    for (const uint32_t slot : slots) {
      const auto round = round_of({recording, its_programs}, step, recording.slots[slot].operation);
      if (!round) continue;
      const size_t first_rank =
          use == RankUse::kAll ? 0 : std::min(rank, recording.ranks.size() - 1);
      const size_t last_rank = use == RankUse::kAll ? recording.ranks.size() - 1 : first_rank;
      for (size_t r = first_rank; r <= last_rank; ++r) {
        out.records.push_back(recording.record(r, *round, slot));
        if (missing.empty() && !recording.has(r, *round, slot))
          missing = missing_text(recording, slot, out.records.back());
      }
    }
    out.transform = transform;
    out.rows = step.rows;
    return out;
  }

  // On how many ranks a pair is compared, each for itself.
  size_t ranks_of(const PlannedPair& pair) const {
    if (pair.form.actual_ranks == RankUse::kEach && !pair.actual.empty())
      return actual->ranks.size();
    if (pair.form.golden_ranks == RankUse::kEach && !pair.golden.empty() && pair.actual.empty())
      return golden->ranks.size();
    return 1;
  }

  // The pairs of each program on all ranks; what the steps hold is taken from these.
  void list_entries() {
    for (const PlannedProgram& program : programs) {
      auto& list = entries.emplace_back();
      for (uint32_t i = 0; i < program.pairs.size(); ++i)
        for (uint32_t rank = 0; rank < ranks_of(program.pairs[i]); ++rank)
          list.push_back({i, rank});
    }
  }

  // Those of the two programs that ran in a step; nothing where none was planned for them.
  std::optional<size_t> program_in(const Step& step) const {
    const auto ran = [](const SideStep& side) {
      return side.round == kNoRound ? kNoProgram : side.program;
    };
    const auto found =
        std::find_if(programs.begin(), programs.end(), [&](const PlannedProgram& program) {
          return program.golden == ran(step.golden) && program.actual == ran(step.actual);
        });
    if (found == programs.end()) return std::nullopt;
    return static_cast<size_t>(found - programs.begin());
  }

  // Whether any of the slots was recorded on the ranks that are used of it.
  bool has_any(bool is_golden, const Step& step, const std::vector<uint32_t>& slots, RankUse use,
               size_t rank) const {
    const size_t ranks = (is_golden ? *golden : *actual).ranks.size();
    const size_t from = use == RankUse::kEach ? std::min(rank, ranks - 1) : 0;
    const size_t to = use == RankUse::kAll ? ranks - 1 : from;
    for (const uint32_t slot : slots)
      for (size_t r = from; r <= to; ++r)
        if (has(is_golden, step, r, slot)) return true;
    return false;
  }

  // The entries of a step: what neither side recorded in it, as a module that only prompts need, is
  // none. Steps that hold the same share their entries.
  size_t entries_in(const PlannedProgram& program, size_t index, const Step& step) {
    const auto is_there = [&](const Entry& entry) {
      const PlannedPair& pair = program.pairs[entry.pair];
      const auto [golden_rank, actual_rank] = ranks_of(step, entry);
      return has_any(false, step, pair.actual, pair.form.actual_ranks, actual_rank) ||
             (!pair.golden_is_mine &&
              has_any(true, step, pair.golden, pair.form.golden_ranks, golden_rank));
    };
    std::vector<Entry> there;
    if (step.ranks.empty()) {
      std::copy_if(entries[index].begin(), entries[index].end(), std::back_inserter(there),
                   is_there);
    } else {
      for (uint32_t pair = 0; pair < program.pairs.size(); ++pair)
        for (uint32_t rank = 0; rank < step.ranks.size(); ++rank)
          if (const Entry entry{pair, rank}; is_there(entry)) there.push_back(entry);
    }
    const auto same = std::find(entries.begin(), entries.end(), there);
    const auto place = static_cast<size_t>(same - entries.begin());
    if (place == entries.size()) entries.push_back(std::move(there));
    return place;
  }

  // Calls visit(row) for the rows of a pair that a row of rank `rank` comes from; for what the pair
  // comes from itself where it is no row in this step, which `pass` is told.
  template <typename Visit, typename Pass>
  void each_source(const std::vector<Entry>& rows, const PlannedProgram& program,
                   const std::vector<PlannedOrigin>& of, uint32_t pair,
                   std::optional<uint32_t> rank, const Visit& visit, const Pass& pass) const {
    const auto begin =
        std::lower_bound(rows.begin(), rows.end(), pair,
                         [](const Entry& entry, uint32_t wanted) { return entry.pair < wanted; });
    const bool is_each = program.pairs[pair].form.actual_ranks == RankUse::kEach;
    bool found = false;
    for (auto row = begin; row != rows.end() && row->pair == pair; ++row) {
      if (rank && is_each && row->rank != *rank) continue;
      found = true;
      visit(static_cast<size_t>(row - rows.begin()));
    }
    if (found) return;
    pass(of[pair]);
    for (const uint32_t source : of[pair].sources)
      each_source(rows, program, of, source, rank, visit, pass);
  }

  // Where a row of a step comes from.
  Origin origin(size_t program, const std::vector<Entry>& rows, size_t row) const {
    Origin out;
    const std::vector<PlannedOrigin>& of = origins[program];
    const Entry& entry = rows[row];
    if (of.empty() || !of[entry.pair].is_known) return out;
    const PlannedOrigin& planned = of[entry.pair];
    const bool from_all = planned.is_collective ||
                          programs[program].pairs[entry.pair].form.actual_ranks == RankUse::kAll;
    std::vector<uint32_t> passed;
    out.is_copy = planned.is_copy;
    for (const uint32_t source : planned.sources)
      each_source(
          rows, programs[program], of, source,
          from_all ? std::nullopt : std::optional<uint32_t>(entry.rank),
          [&](size_t each) { out.sources.push_back(static_cast<uint32_t>(row - each)); },
          [&](const PlannedOrigin& each) {
            out.is_copy &= each.is_copy;
            if (each.operation != capture::kNoOperation) passed.push_back(each.operation);
          });
    sort_unique(out.sources);
    passed.insert(passed.end(), planned.passed.begin(), planned.passed.end());
    sort_unique(passed);
    out.is_known = true;
    out.kind = planned.kind;
    out.operation = actual->operations[planned.operation].name;
    out.is_copy &= out.sources.size() == 1;
    out.passed.reserve(passed.size());
    for (const uint32_t each : passed) out.passed.push_back(actual->operations[each].name);
    return out;
  }

  void choose_rows_of_experts(const RoutedPair& routed, const Step& step, Pair& pair) const {
    const auto golden_choice =
        read_choice({*golden, golden_programs}, step.golden, routed.golden.chosen);
    const auto actual_choice =
        read_choice({*actual, actual_programs}, step.actual, routed.actual.chosen);
    if (!golden_choice || !actual_choice) return;
    const RoutedRows rows =
        rows_in_common(routed, *golden_choice, *actual_choice, [&](bool is_golden, size_t count) {
          const Side& side = is_golden ? pair.golden : pair.actual;
          const bool is_one = side.records.size() == 1 && !side.transform.heads_first;
          return is_one ? read_table(side.records[0], {count, 1}, side.transform) : RowTable{};
        });
    if (!rows.why_none.empty()) {
      pair.unread = true;
      pair.alone = rows.why_none;
    }
    pair.golden.rows = rows.golden;
    pair.actual.rows = rows.actual;
  }

  Pair at(size_t index) const {
    const size_t step_index =
        static_cast<size_t>(std::upper_bound(first.begin(), first.end(), index) - first.begin()) -
        1;
    const Step& step = steps[step_index];
    const PlannedProgram& program = programs[program_of[step_index]];
    const std::vector<Entry>& rows = entries[entries_of[step_index]];
    const Entry entry = rows[index - first[step_index]];
    const PlannedPair& planned = program.pairs[entry.pair];
    const Form& form = planned.form;
    Pair pair;
    pair.token = step.token;
    pair.padding = padding[step_index];
    pair.origin = origin(program_of[step_index], rows, index - first[step_index]);
    if (step.phase_is_known) pair.phase = step.is_prefill ? Phase::kPrefill : Phase::kDecode;
    pair.fit = form.fit;
    pair.certainty = planned.certainty;
    pair.why = planned.why;
    pair.alone = step.alone.empty() ? planned.alone : step.alone;
    if (step.alone.empty() && !planned.who.empty()) pair.alone += " It is " + planned.who + ".";
    pair.unread = !step.alone.empty();
    if (!step.not_comparable.empty() && !planned.golden.empty() && !planned.actual.empty()) {
      pair.unread = true;
      pair.alone = step.not_comparable;
    }
    std::string golden_missing;
    std::string actual_missing;
    const auto [golden_rank, actual_rank] = ranks_of(step, entry);
    const auto rank_for = [](RankUse use, size_t rank) { return use == RankUse::kEach ? rank : 0; };
    if (!planned.golden.empty())
      pair.golden =
          planned.golden_is_mine
              ? side(*actual, actual_programs, step.actual, planned.golden, form.golden,
                     form.golden_ranks, rank_for(form.golden_ranks, actual_rank), golden_missing)
              : side(*golden, golden_programs, step.golden, planned.golden, form.golden,
                     form.golden_ranks, rank_for(form.golden_ranks, golden_rank), golden_missing);
    if (!planned.actual.empty())
      pair.actual =
          side(*actual, actual_programs, step.actual, planned.actual, form.actual,
               form.actual_ranks, rank_for(form.actual_ranks, actual_rank), actual_missing);
    // A tensor that other rounds have: the rest of the pair stands alone. Where neither side has it
    // the reading says so.
    if (pair.complete() && golden_missing.empty() != actual_missing.empty()) {
      pair.alone = (golden_missing.empty() ? actual_missing : golden_missing) +
                   " was not recorded in this round.";
      (golden_missing.empty() ? pair.actual : pair.golden) = {};
      if (!pair.actual.present()) pair.origin = {};
    }
    if (planned.routed && pair.complete()) choose_rows_of_experts(*planned.routed, step, pair);
    if (!planned.actual.empty()) {
      pair.subject = subject(*actual, actual_programs[program.actual], planned.actual[0],
                             form.actual_ranks, actual_rank);
      if (form.actual.taken > 0) pair.subject.first_column = form.actual.first;
    } else {
      pair.subject = subject(*golden, golden_programs[program.golden], planned.golden[0],
                             form.golden_ranks, golden_rank);
    }
    return pair;
  }
};

// My side's operations in the order in which their results are there, what goes into a module when it
// begins; then what only golden has.
void sort_pairs(const Recording& golden, const Recording& actual, std::vector<PlannedPair>& pairs) {
  const auto key = [&](const PlannedPair& pair) {
    const bool mine = !pair.actual.empty();
    const Recording& recording = mine ? actual : golden;
    const uint32_t slot = mine ? pair.actual[0] : pair.golden[0];
    const uint32_t operation = recording.slots[slot].operation;
    const bool begins =
        recording.slots[slot].direction == Direction::kInput && recording.traits.inputs_are_values;
    return std::tuple(!mine, begins ? operation : recording.operations[operation].end, begins,
                      ~operation, slot, pair.form.actual.first, pair.golden);
  };
  std::sort(pairs.begin(), pairs.end(),
            [&](const PlannedPair& a, const PlannedPair& b) { return key(a) < key(b); });
}

// Operations with an output, of all programs; with an input where no outputs were recorded.
std::set<uint32_t> counted_operations(const Recording& recording) {
  const bool has_outputs =
      std::any_of(recording.slots.begin(), recording.slots.end(),
                  [](const capture::Slot& slot) { return slot.direction == Direction::kOutput; });
  std::set<uint32_t> out;
  for (const capture::Slot& slot : recording.slots)
    if ((slot.direction == Direction::kOutput || !has_outputs) &&
        recording.operations[slot.operation].level == capture::Level::kOperation)
      out.insert(slot.operation);
  return out;
}

Coverage coverage_of(const Recording& recording, const std::set<uint32_t>& paired,
                     const std::unordered_map<uint32_t, std::string>& alone,
                     const std::set<uint32_t>& copies) {
  Coverage out;
  for (const uint32_t operation : counted_operations(recording)) {
    ++out.operations;
    if (paired.contains(operation)) {
      ++out.paired;
    } else if (copies.contains(operation)) {
      ++out.copies;
    } else {
      const auto why = alone.find(operation);
      ++out.alone[why == alone.end() ? "no round of the other run corresponds to its round."
                                     : why->second];
    }
  }
  return out;
}

// Golden's operation that holds the same data as one that is paired.
bool is_copy(const PlannedPair& pair) { return pair.actual.empty() && pair.alone.empty(); }

bool stands_alone(const PlannedProgram& program) {
  return program.golden == kNoProgram || program.actual == kNoProgram;
}

// By call; what only one side has after what both have, golden's first.
std::vector<Step> all_steps(Alignment alignment) {
  std::vector<Step> steps = std::move(alignment.steps);
  std::move(alignment.alone.begin(), alignment.alone.end(), std::back_inserter(steps));
  const auto key = [](const Step& step) {
    return std::tuple(step.number, !step.alone.empty(), step.golden.round == kNoRound);
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const Step& a, const Step& b) { return key(a) < key(b); });
  return steps;
}

// The folder of a round; of one of several graphs that count for themselves, with the graph.
std::string round_text(const Recording& recording, const SideStep& step) {
  const std::string& round = recording.rounds[step.round];
  if (recording.graphs.size() < 2 || recording.traits.rounds != capture::Traits::Rounds::kGraphs)
    return round;
  return recording.graphs[step.program].name + "/" + round;
}

// Names the tokens that only one side has, the first few of them.
void add_note(const Alignment& alignment, bool is_golden, std::vector<std::string>& notes) {
  constexpr size_t kNamed = 8;
  std::vector<std::string> tokens;
  for (const Step& step : alignment.alone)
    if (step.number >= 0 && !step.is_rank_alone && (step.actual.round == kNoRound) == is_golden)
      tokens.push_back(step.token);
  if (tokens.empty()) return;
  std::string names;
  for (size_t i = 0; i < tokens.size() && i < kNamed; ++i) names += (i > 0 ? ", " : "") + tokens[i];
  notes.push_back(std::string(is_golden ? "golden" : "my side") + " alone has " +
                  (tokens.size() == 1 ? "token " : "tokens ") + names +
                  (tokens.size() > kNamed ? ", …" : "") +
                  ": the tensors recorded there are rows without a partner");
}

// What becomes of the operations of both runs, whatever the round.
class Accounts {
 public:
  Accounts(const Recording& golden, const Recording& actual) : golden_(golden), actual_(actual) {}

  void add(const PlannedPair& pair) {
    const bool complete = !pair.golden.empty() && !pair.actual.empty();
    for (const uint32_t slot : pair.golden_is_mine ? std::vector<uint32_t>() : pair.golden) {
      const uint32_t operation = golden_.slots[slot].operation;
      if (complete)
        golden_paired_.insert(operation);
      else if (is_copy(pair))
        golden_copies_.insert(operation);
      else
        golden_alone_.emplace(operation, pair.alone);
    }
    for (const uint32_t slot : pair.actual) {
      const uint32_t operation = actual_.slots[slot].operation;
      if (complete)
        actual_paired_.insert(operation);
      else
        actual_alone_.emplace(operation, pair.alone);
      const bool is_output = actual_.slots[slot].direction == Direction::kOutput;
      if (complete && is_output) output_paired_.insert(operation);
      if (complete && pair.certainty != Certainty::kCertain)
        (is_output ? likely_outputs_ : likely_inputs_).insert(operation);
    }
  }

  void settle(AutomaticPairs& out) const {
    out.golden = coverage_of(golden_, golden_paired_, golden_alone_, golden_copies_);
    out.actual = coverage_of(actual_, actual_paired_, actual_alone_, {});
    for (const uint32_t operation : counted_operations(actual_))
      if (actual_paired_.contains(operation)) ++(is_likely(operation) ? out.likely : out.certain);
  }

 private:
  // What comes out tells more than what goes in.
  bool is_likely(uint32_t operation) const {
    return likely_outputs_.contains(operation) ||
           (likely_inputs_.contains(operation) && !output_paired_.contains(operation));
  }

  const Recording& golden_;
  const Recording& actual_;
  std::set<uint32_t> golden_paired_, golden_copies_, actual_paired_;
  std::set<uint32_t> output_paired_, likely_outputs_, likely_inputs_;  // of mine
  std::unordered_map<uint32_t, std::string> golden_alone_, actual_alone_;
};

// Counts what is covered, then leaves out what was only there to be counted, and puts the rest in
// order.
void count_pairs(const Recording& golden, const Recording& actual,
                 std::vector<PlannedProgram>& planned, AutomaticPairs& out) {
  Accounts accounts(golden, actual);
  for (PlannedProgram& program : planned) {
    // What a program does in rounds without a counterpart says nothing of its operations.
    if (!stands_alone(program)) {
      for (const PlannedPair& pair : program.pairs) accounts.add(pair);
      std::erase_if(program.pairs, is_copy);
    }
    sort_pairs(golden, actual, program.pairs);
  }
  accounts.settle(out);
}

// Leaves out pairs of other levels.
void keep_level(CompareLevel level, const RunSide& golden, const RunSide& actual,
                PlannedProgram& planned) {
  const auto is_wanted = [&](const PlannedPair& pair) {
    const bool mine = !pair.actual.empty();
    const RunSide& side = mine ? actual : golden;
    const uint32_t slot = mine ? pair.actual[0] : pair.golden[0];
    return is_of(level, side.recording, side.programs[mine ? planned.actual : planned.golden],
                 side.recording.slots[slot].operation);
  };
  std::erase_if(planned.pairs, [&](const PlannedPair& pair) { return !is_wanted(pair); });
}

// Where rows are compared by choice, those that hold no token are not among them.
std::shared_ptr<const std::vector<bool>> padding_in(const RunSide& golden, const RunSide& actual,
                                                    const Step& step) {
  if (!step.alone.empty() || step.actual.rows || step.golden.rows) return nullptr;
  auto padding = find_padding(actual, step.actual);
  return padding ? padding : find_padding(golden, step.golden);
}

// Where the rows of each program come from, by what my side did in the first steps of it.
std::vector<std::vector<PlannedOrigin>> origins_of(const RunSide& actual,
                                                   const std::vector<PlannedProgram>& programs,
                                                   const std::vector<Step>& steps) {
  std::vector<std::vector<PlannedOrigin>> out(programs.size());
  std::map<size_t, Flow> flows;  // by my program
  for (size_t i = 0; i < programs.size(); ++i) {
    if (stands_alone(programs[i])) continue;
    std::vector<const SideStep*> its_steps;
    for (const Step& step : steps)
      if (step.actual.program == programs[i].actual && step.actual.round != kNoRound)
        its_steps.push_back(&step.actual);
    if (its_steps.empty()) continue;
    const auto [flow, is_new] = flows.try_emplace(programs[i].actual);
    if (is_new) flow->second = find_flow(actual, programs[i].actual, its_steps);
    out[i] = plan_origins(actual.recording, flow->second, programs[i].pairs);
  }
  return out;
}

size_t most_layers(const std::vector<Program>& programs) {
  size_t out = 0;
  for (const Program& program : programs) out = std::max(out, program.layers.size());
  return out;
}

}  // namespace

AutomaticPairs carry_out(SharedRecording golden, SharedRecording actual,
                         std::vector<Program> golden_programs, std::vector<Program> actual_programs,
                         Alignment alignment, std::vector<PlannedProgram> planned,
                         CompareLevel level) {
  AutomaticPairs out;
  out.notes = alignment.notes;
  add_note(alignment, true, out.notes);
  add_note(alignment, false, out.notes);
  out.golden_layers = most_layers(golden_programs);
  out.actual_layers = most_layers(actual_programs);
  count_pairs(*golden, *actual, planned, out);
  for (PlannedProgram& program : planned)
    keep_level(level, {*golden, golden_programs}, {*actual, actual_programs}, program);
  auto origins = origins_of({*actual, actual_programs}, planned, alignment.steps);

  auto plan = std::make_shared<Plan>();
  plan->golden = std::move(golden);
  plan->actual = std::move(actual);
  plan->golden_programs = std::move(golden_programs);
  plan->actual_programs = std::move(actual_programs);
  plan->programs = std::move(planned);
  plan->origins = std::move(origins);
  plan->list_entries();
  size_t total = 0;
  for (Step& step : all_steps(std::move(alignment))) {
    const auto program = plan->program_in(step);
    if (!program) continue;
    if (step.alone.empty())
      out.tokens.push_back({step.token, round_text(*plan->golden, step.golden),
                            round_text(*plan->actual, step.actual), step.is_prefill,
                            step.phase_is_known});
    const size_t entries = plan->entries_in(plan->programs[*program], *program, step);
    plan->program_of.push_back(*program);
    plan->entries_of.push_back(entries);
    plan->padding.push_back(padding_in({*plan->golden, plan->golden_programs},
                                       {*plan->actual, plan->actual_programs}, step));
    plan->first.push_back(total);
    plan->steps.push_back(std::move(step));
    total += plan->entries[entries].size();
  }
  out.pairs.count = total;
  out.pairs.at = [plan = std::move(plan)](size_t index) { return plan->at(index); };
  return out;
}

}  // namespace ait::match
