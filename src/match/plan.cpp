#include "match/plan.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;

struct Entry {
  uint32_t pair;
  uint32_t rank;  // which of them, where each is compared for itself
};

// Everything the pairs are made of; shared by copies of the function that makes them.
struct Plan {
  SharedRecording golden;
  SharedRecording actual;
  std::vector<Program> golden_programs;
  std::vector<Program> actual_programs;
  std::vector<Step> steps;
  std::vector<PlannedProgram> programs;
  std::vector<std::vector<Entry>> entries;  // [program]
  std::vector<size_t> program_of;           // [step]
  std::vector<size_t> first;                // index of the first pair of each step, and the count

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
        if (missing.empty() && !recording.has(r, *round, slot)) missing = out.records.back().path;
      }
    }
    out.transform = transform;
    return out;
  }

  Pair at(size_t index) const {
    const size_t step_index =
        static_cast<size_t>(std::upper_bound(first.begin(), first.end(), index) - first.begin()) -
        1;
    const Step& step = steps[step_index];
    const PlannedProgram& program = programs[program_of[step_index]];
    const Entry entry = entries[program_of[step_index]][index - first[step_index]];
    const PlannedPair& planned = program.pairs[entry.pair];
    const Form& form = planned.form;
    Pair pair;
    pair.token = step.token;
    pair.phase = step.is_prefill ? Phase::kPrefill : Phase::kDecode;
    pair.fit = form.fit;
    pair.certainty = planned.certainty;
    pair.why = planned.why;
    pair.alone = planned.alone;
    std::string golden_missing;
    std::string actual_missing;
    if (!planned.golden.empty())
      pair.golden = side(*golden, golden_programs, step.golden, planned.golden, form.golden,
                         form.golden_ranks, form.golden_ranks == RankUse::kEach ? entry.rank : 0,
                         golden_missing);
    if (!planned.actual.empty())
      pair.actual = side(*actual, actual_programs, step.actual, planned.actual, form.actual,
                         form.actual_ranks, form.actual_ranks == RankUse::kEach ? entry.rank : 0,
                         actual_missing);
    // A tensor that other rounds have: the rest of the pair stands alone. Where neither side has it
    // the reading says so.
    if (pair.complete() && golden_missing.empty() != actual_missing.empty()) {
      pair.alone = (golden_missing.empty() ? actual_missing : golden_missing) +
                   " was not recorded in this round.";
      (golden_missing.empty() ? pair.actual : pair.golden) = {};
    }
    if (!planned.actual.empty()) {
      pair.subject = subject(*actual, actual_programs[program.actual], planned.actual[0],
                             form.actual_ranks, entry.rank);
      if (form.actual.taken > 0) pair.subject.first_column = form.actual.first;
    } else {
      pair.subject = subject(*golden, golden_programs[program.golden], planned.golden[0],
                             form.golden_ranks, entry.rank);
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

// Operations with an output, of all programs.
std::set<uint32_t> operations_with_output(const Recording& recording) {
  std::set<uint32_t> out;
  for (const capture::Slot& slot : recording.slots)
    if (slot.direction == Direction::kOutput &&
        recording.operations[slot.operation].level == capture::Level::kOperation)
      out.insert(slot.operation);
  return out;
}

Coverage coverage_of(const Recording& recording, const std::set<uint32_t>& paired,
                     const std::unordered_map<uint32_t, std::string>& alone,
                     const std::set<uint32_t>& copies) {
  Coverage out;
  for (const uint32_t operation : operations_with_output(recording)) {
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

}  // namespace

AutomaticPairs carry_out(SharedRecording golden, SharedRecording actual,
                         std::vector<Program> golden_programs, std::vector<Program> actual_programs,
                         Alignment alignment, std::vector<PlannedProgram> planned) {
  AutomaticPairs out;
  std::set<uint32_t> golden_paired, actual_paired, golden_copies, actual_likely;
  std::unordered_map<uint32_t, std::string> golden_alone, actual_alone;
  for (PlannedProgram& program : planned) {
    for (const PlannedPair& pair : program.pairs) {
      const bool complete = !pair.golden.empty() && !pair.actual.empty();
      for (const uint32_t slot : pair.golden) {
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
        if (complete && pair.certainty != Certainty::kCertain) actual_likely.insert(operation);
      }
    }
    // Copies were only there to be counted.
    std::erase_if(program.pairs, [](const PlannedPair& pair) {
      return pair.actual.empty() && pair.alone.empty();
    });
    sort_pairs(*golden, *actual, program.pairs);
  }
  out.golden = coverage_of(*golden, golden_paired, golden_alone, golden_copies);
  out.actual = coverage_of(*actual, actual_paired, actual_alone, {});
  for (const uint32_t operation : operations_with_output(*actual))
    if (actual_paired.contains(operation))
      ++(actual_likely.contains(operation) ? out.likely : out.certain);
  for (const Program& program : golden_programs)
    out.golden_layers = std::max(out.golden_layers, program.layers.size());
  for (const Program& program : actual_programs)
    out.actual_layers = std::max(out.actual_layers, program.layers.size());
  out.notes = std::move(alignment.notes);

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
  for (Step& step : alignment.steps) {
    const auto found = std::find_if(
        plan->programs.begin(), plan->programs.end(), [&](const PlannedProgram& program) {
          return program.golden == step.golden.program && program.actual == step.actual.program;
        });
    if (found == plan->programs.end()) continue;
    const auto index = static_cast<size_t>(found - plan->programs.begin());
    out.tokens.push_back({step.token, plan->golden->rounds[step.golden.round],
                          plan->actual->rounds[step.actual.round], step.is_prefill});
    plan->program_of.push_back(index);
    plan->first.push_back(total);
    plan->steps.push_back(std::move(step));
    total += plan->entries[index].size();
  }
  out.pairs.count = total;
  out.pairs.at = [plan = std::move(plan)](size_t index) { return plan->at(index); };
  return out;
}

}  // namespace ait::match
