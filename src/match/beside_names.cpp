#include "match/beside_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "match/fused.h"
#include "match/values.h"

namespace ait::match {
namespace {

using capture::Recording;

// As many as where no names help: a prompt and a new word.
constexpr size_t kRoundsLookedAt = 2;

class BesideNames {
 public:
  explicit BesideNames(const NamedRuns& runs)
      : runs_(runs),
        golden_(runs.golden.recording),
        actual_(runs.actual.recording),
        golden_of_(same_slots(golden_, actual_, runs.places)) {}

  void run(PlannedProgram& out) {
    plan_inputs(*runs_.steps.front(), out);
    plan_rest(out);
  }

 private:
  // The inputs that show what happens between modules, where either run computed them there.
  void plan_inputs(const Step& step, PlannedProgram& out) {
    const auto [golden_tokens, actual_tokens] = runs_.tokens_of(step);
    const auto own_of = [&](const RunSide& side, const SideStep& at, const Tokens& tokens) {
      return inputs_of_their_own(
          {side.recording, side.programs[at.program],
           [&](const Segment& segment, const std::vector<Value>& values) {
             return facts_of(SegmentRound{{side.recording, segment, values},
                                          tokens,
                                          [&](uint32_t each) { return round_of(side, at, each); }});
           }});
    };
    std::set<uint32_t> wanted;  // of my slots
    const std::vector<uint32_t> goldens = own_of(runs_.golden, step.golden, golden_tokens);
    for (uint32_t slot = 0; slot < golden_of_.size(); ++slot)
      if (golden_of_[slot] != kNoSlot &&
          std::binary_search(goldens.begin(), goldens.end(), golden_of_[slot]))
        wanted.insert(slot);
    for (const uint32_t slot : own_of(runs_.actual, step.actual, actual_tokens))
      if (golden_of_[slot] != kNoSlot) wanted.insert(slot);
    for (const PlannedPair& pair : out.pairs)
      if (!pair.actual.empty()) wanted.erase(pair.actual[0]);
    for (const uint32_t slot : wanted) {
      const auto golden_sample = read_slot(true, golden_of_[slot], step);
      const auto sample = golden_sample ? golden_sample : read_slot(false, slot, step);
      if (sample && is_mask(*sample)) continue;
      PlannedPair pair;
      pair.golden = {golden_of_[slot]};
      pair.actual = {slot};
      if (golden_.ranks.size() > 1 || actual_.ranks.size() > 1)
        pair.form.golden_ranks = pair.form.actual_ranks = RankUse::kEach;
      pair.form.fit = Fit::kRepeat;
      pair.why = "by the names of the modules around it, since it is no module's output";
      out.pairs.push_back(std::move(pair));
    }
  }

  // Modules of one run that have no equal name in the other, in layers that correspond: data and
  // types decide, with what names have settled as anchors.
  void plan_rest(PlannedProgram& out) {
    const auto [golden_rest, actual_rest] = slots_alone(out);
    if (actual_rest.empty()) return;
    const auto has_rest = [&](const std::vector<uint32_t>& operations) {
      return std::any_of(operations.begin(), operations.end(), [&](uint32_t each) {
        const auto first = actual_rest.lower_bound(actual_.first_slot[each]);
        return first != actual_rest.end() && *first < actual_.first_slot[each + 1];
      });
    };
    std::map<std::string, std::vector<SegmentPair>> cases;
    for (const SegmentPair& each : segments_by_place(
             runs_.golden.programs[out.golden], runs_.actual.programs[out.actual], runs_.places)) {
      if (!has_rest(each.second->operations)) continue;
      std::string key =
          structure_of(golden_, *each.first) + "|" + structure_of(actual_, *each.second);
      for (const auto& [golden, actual] : settled_values(each))
        key += "|" + std::to_string(golden) + "=" + std::to_string(actual);
      cases[key].push_back(each);
    }
    std::vector<const Step*> looked_at = runs_.steps;
    looked_at.resize(std::min(kRoundsLookedAt, looked_at.size()));
    PlannedProgram found{out.golden, out.actual, {}};
    for (const auto& [key, segments] : cases)
      runs_.plan_segments(segments, looked_at, settled_values(segments[0]), found);
    // A module's input that is the same as something is no news: outputs are what rows are of.
    std::erase_if(found.pairs, [&](const PlannedPair& pair) {
      return (pair.golden.empty() || !golden_rest.contains(pair.golden[0])) &&
             (pair.actual.empty() || !actual_rest.contains(pair.actual[0]));
    });
    add_found(found.pairs, out);

    const auto read = [&](bool is_golden, uint32_t slot, size_t at) {
      return read_slot(is_golden, slot, *looked_at[at]);
    };
    std::vector<PlannedPair> fused = plan_fused(golden_, actual_, runs_.places, golden_rest,
                                                actual_rest, read, looked_at.size());
    // Those of which data have told it already.
    const auto [golden_left, actual_left] = slots_alone(out);
    std::erase_if(fused, [&](const PlannedPair& pair) {
      const bool golden_is_part = pair.form.golden.taken == 0;
      return golden_is_part ? !golden_left.contains(pair.golden[0])
                            : !actual_left.contains(pair.actual[0]);
    });
    add_found(std::move(fused), out);
  }

  // Golden's and mine that have no partner.
  static std::pair<std::set<uint32_t>, std::set<uint32_t>> slots_alone(const PlannedProgram& from) {
    std::pair<std::set<uint32_t>, std::set<uint32_t>> out;
    for (const PlannedPair& pair : from.pairs) {
      if (pair.actual.empty()) out.first.insert(pair.golden[0]);
      if (pair.golden.empty()) out.second.insert(pair.actual[0]);
    }
    return out;
  }

  // In place of rows that say that these stand alone.
  static void add_found(std::vector<PlannedPair> found, PlannedProgram& out) {
    std::set<uint32_t> golden;
    std::set<uint32_t> actual;
    for (const PlannedPair& pair : found) {
      golden.insert(pair.golden.begin(), pair.golden.end());
      actual.insert(pair.actual.begin(), pair.actual.end());
    }
    std::erase_if(out.pairs, [&](const PlannedPair& pair) {
      return (pair.golden.empty() && actual.contains(pair.actual[0])) ||
             (pair.actual.empty() && golden.contains(pair.golden[0]));
    });
    std::move(found.begin(), found.end(), std::back_inserter(out.pairs));
  }

  std::optional<Sample> read_slot(bool is_golden, uint32_t slot, const Step& step) {
    const RunSide& side = is_golden ? runs_.golden : runs_.actual;
    const auto [golden_tokens, actual_tokens] = runs_.tokens_of(step);
    const auto round =
        round_of(side, is_golden ? step.golden : step.actual, side.recording.slots[slot].operation);
    if (!round || !side.recording.has(0, *round, slot)) return std::nullopt;
    return read_sample(side.recording.record(0, *round, slot),
                       is_golden ? golden_tokens : actual_tokens);
  }

  // The values of two segments that names have settled.
  SettledValues settled_values(const SegmentPair& segments) const {
    std::map<uint32_t, uint32_t> golden_values;  // by slot
    const std::vector<Value> goldens = values_of(golden_, *segments.first);
    for (uint32_t i = 0; i < goldens.size(); ++i)
      golden_values.emplace(slot_of(golden_, *segments.first, goldens[i]), i);
    const std::vector<Value> actuals = values_of(actual_, *segments.second);
    SettledValues out;
    for (uint32_t i = 0; i < actuals.size(); ++i) {
      const auto found =
          golden_values.find(golden_of_[slot_of(actual_, *segments.second, actuals[i])]);
      if (found != golden_values.end()) out.emplace_back(found->second, i);
    }
    return out;
  }

  const NamedRuns& runs_;
  const Recording& golden_;
  const Recording& actual_;
  std::vector<uint32_t> golden_of_;  // [my slot]
};

}  // namespace

void plan_beside_names(const NamedRuns& runs, PlannedProgram& out) { BesideNames(runs).run(out); }

}  // namespace ait::match
