#include "match/plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <unordered_map>

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;

struct Entry {
  uint32_t pair;
  uint32_t rank;  // which of them, where each is compared for itself: of Step::ranks, if it has any
  bool operator==(const Entry&) const = default;
};

// Everything the pairs are made of; shared by copies of the function that makes them.
struct Plan {
  SharedRecording golden;
  SharedRecording actual;
  std::vector<Program> golden_programs;
  std::vector<Program> actual_programs;
  std::vector<Step> steps;
  std::vector<PlannedProgram> programs;
  std::vector<std::vector<Entry>> entries;  // those of a program first, in its order
  std::vector<size_t> program_of;           // [step]
  std::vector<size_t> entries_of;           // [step]
  std::vector<size_t> first;                // index of the first pair of each step

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
    return out;
  }

  // The entries of a step: a tensor without a partner is one only where it was recorded. Steps that
  // hold the same share their entries.
  size_t entries_in(const PlannedProgram& program, size_t index, const Step& step) {
    const auto is_there = [&](const Entry& entry) {
      const PlannedPair& pair = program.pairs[entry.pair];
      const auto [golden_rank, actual_rank] = ranks_of(step, entry);
      const bool complete = !pair.golden.empty() && !pair.actual.empty();
      // Where each graph and rank has rounds of its own, not every step has every pair.
      if (complete && step.ranks.empty()) return true;
      return (!pair.actual.empty() && has(false, step, actual_rank, pair.actual[0])) ||
             (!pair.golden.empty() && !pair.golden_is_mine &&
              has(true, step, golden_rank, pair.golden[0]));
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

  Pair at(size_t index) const {
    const size_t step_index =
        static_cast<size_t>(std::upper_bound(first.begin(), first.end(), index) - first.begin()) -
        1;
    const Step& step = steps[step_index];
    const PlannedProgram& program = programs[program_of[step_index]];
    const Entry entry = entries[entries_of[step_index]][index - first[step_index]];
    const PlannedPair& planned = program.pairs[entry.pair];
    const Form& form = planned.form;
    Pair pair;
    pair.token = step.token;
    if (step.phase_is_known) pair.phase = step.is_prefill ? Phase::kPrefill : Phase::kDecode;
    pair.fit = form.fit;
    pair.certainty = planned.certainty;
    pair.why = planned.why;
    pair.alone = step.alone.empty() ? planned.alone : step.alone;
    if (step.alone.empty() && !planned.who.empty()) pair.alone += " It is " + planned.who + ".";
    pair.unread = !step.alone.empty();
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
    }
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

size_t ranks_of(const Plan& plan, const PlannedPair& pair) {
  if (pair.form.actual_ranks == RankUse::kEach && !pair.actual.empty())
    return plan.actual->ranks.size();
  if (pair.form.golden_ranks == RankUse::kEach && !pair.golden.empty() && pair.actual.empty())
    return plan.golden->ranks.size();
  return 1;
}

// My side's operations in the order in which their results are there; then what only golden has.
void sort_pairs(const Recording& golden, const Recording& actual, std::vector<PlannedPair>& pairs) {
  const auto key = [&](const PlannedPair& pair) {
    const bool mine = !pair.actual.empty();
    const Recording& recording = mine ? actual : golden;
    const uint32_t slot = mine ? pair.actual[0] : pair.golden[0];
    const uint32_t operation = recording.slots[slot].operation;
    return std::tuple(!mine, recording.operations[operation].end, ~operation, slot,
                      pair.form.actual.first, pair.golden);
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
    if (step.number >= 0 && (step.actual.round == kNoRound) == is_golden)
      tokens.push_back(step.token);
  if (tokens.empty()) return;
  std::string names;
  for (size_t i = 0; i < tokens.size() && i < kNamed; ++i) names += (i > 0 ? ", " : "") + tokens[i];
  notes.push_back(std::string(is_golden ? "golden" : "my side") + " alone has " +
                  (tokens.size() == 1 ? "token " : "tokens ") + names +
                  (tokens.size() > kNamed ? ", …" : "") +
                  ": what was recorded there are rows without a partner");
}

}  // namespace

AutomaticPairs carry_out(SharedRecording golden, SharedRecording actual,
                         std::vector<Program> golden_programs, std::vector<Program> actual_programs,
                         Alignment alignment, std::vector<PlannedProgram> planned,
                         CompareLevel level) {
  AutomaticPairs out;
  add_note(alignment, true, out.notes);
  add_note(alignment, false, out.notes);
  std::set<uint32_t> golden_paired, actual_paired, golden_copies, actual_likely;
  // By their inputs, and by their outputs at all: what comes out tells more than what goes in.
  std::set<uint32_t> likely_inputs, output_paired;
  std::unordered_map<uint32_t, std::string> golden_alone, actual_alone;
  for (PlannedProgram& program : planned) {
    // What a program does in rounds without a counterpart says nothing of its operations.
    if (stands_alone(program)) {
      sort_pairs(*golden, *actual, program.pairs);
      continue;
    }
    for (const PlannedPair& pair : program.pairs) {
      const bool complete = !pair.golden.empty() && !pair.actual.empty();
      for (const uint32_t slot : pair.golden_is_mine ? std::vector<uint32_t>() : pair.golden) {
        const uint32_t operation = golden->slots[slot].operation;
        if (complete)
          golden_paired.insert(operation);
        else if (pair.actual.empty() && pair.alone.empty())
          golden_copies.insert(operation);
        else
          golden_alone.emplace(operation, pair.alone);
      }
      for (const uint32_t slot : pair.actual) {
        const uint32_t operation = actual->slots[slot].operation;
        if (complete)
          actual_paired.insert(operation);
        else
          actual_alone.emplace(operation, pair.alone);
        const bool is_output = actual->slots[slot].direction == Direction::kOutput;
        if (complete && is_output) output_paired.insert(operation);
        if (complete && pair.certainty != Certainty::kCertain)
          (is_output ? actual_likely : likely_inputs).insert(operation);
      }
    }
    // Copies were only there to be counted.
    std::erase_if(program.pairs, [](const PlannedPair& pair) {
      return pair.actual.empty() && pair.alone.empty();
    });
    sort_pairs(*golden, *actual, program.pairs);
  }
  for (PlannedProgram& program : planned)
    std::erase_if(program.pairs, [&](const PlannedPair& pair) {
      return pair.actual.empty() ? !is_of(level, *golden, golden_programs[program.golden],
                                          golden->slots[pair.golden[0]].operation)
                                 : !is_of(level, *actual, actual_programs[program.actual],
                                          actual->slots[pair.actual[0]].operation);
    });
  for (const uint32_t operation : likely_inputs)
    if (!output_paired.contains(operation)) actual_likely.insert(operation);
  out.golden = coverage_of(*golden, golden_paired, golden_alone, golden_copies);
  out.actual = coverage_of(*actual, actual_paired, actual_alone, {});
  for (const uint32_t operation : counted_operations(*actual))
    if (actual_paired.contains(operation))
      ++(actual_likely.contains(operation) ? out.likely : out.certain);
  for (const Program& program : golden_programs)
    out.golden_layers = std::max(out.golden_layers, program.layers.size());
  for (const Program& program : actual_programs)
    out.actual_layers = std::max(out.actual_layers, program.layers.size());
  out.notes.insert(out.notes.begin(), alignment.notes.begin(), alignment.notes.end());

  auto plan = std::make_shared<Plan>();
  plan->golden = std::move(golden);
  plan->actual = std::move(actual);
  plan->golden_programs = std::move(golden_programs);
  plan->actual_programs = std::move(actual_programs);
  plan->programs = std::move(planned);
  for (const PlannedProgram& program : plan->programs) {
    auto& entries = plan->entries.emplace_back();
    for (uint32_t i = 0; i < program.pairs.size(); ++i)
      for (uint32_t rank = 0; rank < ranks_of(*plan, program.pairs[i]); ++rank)
        entries.push_back({i, rank});
  }
  size_t total = 0;
  for (Step& step : all_steps(std::move(alignment))) {
    const size_t golden_program = step.golden.round == kNoRound ? kNoProgram : step.golden.program;
    const size_t actual_program = step.actual.round == kNoRound ? kNoProgram : step.actual.program;
    const auto found = std::find_if(
        plan->programs.begin(), plan->programs.end(), [&](const PlannedProgram& program) {
          return program.golden == golden_program && program.actual == actual_program;
        });
    if (found == plan->programs.end()) continue;
    const auto index = static_cast<size_t>(found - plan->programs.begin());
    if (step.alone.empty())
      out.tokens.push_back({step.token, round_text(*plan->golden, step.golden),
                            round_text(*plan->actual, step.actual), step.is_prefill,
                            step.phase_is_known});
    const size_t entries = plan->entries_in(*found, index, step);
    plan->program_of.push_back(index);
    plan->entries_of.push_back(entries);
    plan->first.push_back(total);
    plan->steps.push_back(std::move(step));
    total += plan->entries[entries].size();
  }
  out.pairs.count = total;
  out.pairs.at = [plan = std::move(plan)](size_t index) { return plan->at(index); };
  return out;
}

}  // namespace ait::match
