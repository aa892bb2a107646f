#include "match/automatic.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/read_ahead.h"
#include "match/beside_names.h"
#include "match/by_place.h"
#include "match/fed.h"
#include "match/match_problem.h"
#include "match/padding.h"
#include "match/plan.h"
#include "match/routing.h"
#include "match/rows.h"
#include "match/same_ranks.h"
#include "match/seen.h"
#include "match/segment_match.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Kept;
using capture::kNoOperation;
using capture::Recording;

// Layers of each kind that are looked at, spread over the model: enough for a majority when a fault
// lies in one of them or spoils all that follow.
constexpr size_t kLayersLookedAt = 5;

// Rounds of each graph that are looked at, the first ones: a prompt and a new word where one graph
// does both.
constexpr size_t kRoundsLookedAt = 2;

// Two rounds whose data in the first layer are this near worked on the same input.
constexpr double kSameInput = 0.1;

bool has_outputs(const Recording& recording) {
  return std::any_of(recording.slots.begin(), recording.slots.end(), [](const capture::Slot& slot) {
    return slot.direction == Direction::kOutput;
  });
}

bool has_data(const Recording& recording) {
  return std::any_of(recording.slots.begin(), recording.slots.end(),
                     [](const capture::Slot& slot) { return slot.kept == Kept::kBytes; });
}

// Pairing looks at files of the first round here and there, and compares them all afterwards: they
// are asked for in order, as far as they fit into a part of the memory.
constexpr uint64_t kPartOfMemory = 4;
constexpr size_t kFilesTogether = 32;

void want_first_round(const Recording& golden, const Recording& actual, ReadAhead& disk) {
  std::vector<std::string> paths;
  const size_t slots = std::max(golden.slots.size(), actual.slots.size());
  for (uint32_t slot = 0; slot < slots; ++slot)
    for (const Recording* run : {&golden, &actual})
      for (size_t rank = 0; rank < run->ranks.size(); ++rank) {
        if (slot >= run->slots.size() || run->rounds.empty() || !run->has(rank, 0, slot)) continue;
        paths.push_back(run->record(rank, 0, slot).path);
        if (paths.size() < kFilesTogether) continue;
        disk.want(std::exchange(paths, {}));
      }
  disk.want(std::move(paths));
}

class Automatic {
 public:
  Automatic(SharedRecording golden, SharedRecording actual, const AutomaticOptions& options)
      : golden_(std::move(golden)),
        actual_(std::move(actual)),
        options_(options),
        golden_programs_(find_programs(*golden_)),
        actual_programs_(find_programs(*actual_)),
        golden_side_{*golden_, golden_programs_},
        actual_side_{*actual_, actual_programs_},
        feeding_(golden_side_, actual_side_, [this](const Step& step) { return tokens_of(step); }),
        golden_has_data_(has_data(*golden_)),
        actual_has_data_(has_data(*actual_)),
        golden_has_outputs_(has_outputs(*golden_)),
        actual_has_outputs_(has_outputs(*actual_)) {}

  Result<AutomaticPairs> run() {
    if (golden_programs_.empty() || actual_programs_.empty() || golden_->slots.empty() ||
        actual_->slots.empty())
      return fail(Error(ErrorCode::kUsage, golden_->slots.empty() ? golden_->root : actual_->root)
                  << "holds no tensors to compare; record the run again with its tensors");
    const std::optional<PlaceMap> places = find_places(*golden_, *actual_);
    if (places) split_alike(*places);
    forget_experts(*golden_, golden_programs_);
    forget_experts(*actual_, actual_programs_);
    if (std::string doubt = places ? doubt_about_ranks(*golden_, *actual_, places->ranks) : "";
        !doubt.empty())
      notes_.push_back(std::move(doubt));
    auto alignment = align_tokens(
        golden_side_, actual_side_, options_.token_map,
        [&](const RunSide& side, const SideStep& step) { return seen_in(side, step).tokens.count; },
        [&](const Step& step) { return worked_on_the_same(step); }, options_.rounds_are_named);
    if (!alignment) return fail(alignment.error());
    mark_other_tokens(feeding_, !options_.token_map.empty(), *alignment);
    if (places && golden_->ranks.size() != actual_->ranks.size())
      keep_to_ranks(*golden_, *actual_, places->ranks, *alignment);
    for (Step& step : alignment->steps) {
      const RowPair rows = rows_of(step).value_or(RowPair{});
      step.golden.rows = rows.golden;
      step.actual.rows = rows.actual;
    }

    std::map<std::pair<size_t, size_t>, std::vector<const Step*>> groups;
    for (const Step& step : alignment->steps)
      groups[{step.golden.program, step.actual.program}].push_back(&step);
    // Steps that worked on the same tell who corresponds to whom, if there are any.
    for (auto& [programs, steps] : groups) {
      const auto others = std::stable_partition(steps.begin(), steps.end(), [](const Step* step) {
        return step->not_comparable.empty();
      });
      if (others != steps.begin()) steps.erase(others, steps.end());
    }
    std::vector<PlannedProgram> planned;
    planned.reserve(groups.size());
    for (const auto& [programs, steps] : groups)
      planned.push_back(places ? plan_by_place(*golden_, golden_programs_[programs.first], *actual_,
                                               actual_programs_[programs.second], *places, programs)
                               : plan_by_data(programs, steps));
    if (!places)
      for (std::string& note : notes_on_idle_lines(*golden_, *actual_, options_.mappings, planned))
        notes_.push_back(std::move(note));
    if (places && golden_->traits.inputs_are_values && actual_->traits.inputs_are_values)
      for (PlannedProgram& program : planned)
        plan_beside_names(
            {golden_side_, actual_side_, *places, groups.at({program.golden, program.actual}),
             [&](const Step& step) { return tokens_of(step); },
             [&](const auto& segments, const auto& steps, const auto& settled,
                 PlannedProgram& out) { plan_segments(segments, steps, out, settled); }},
            program);
    for (PlannedProgram& program : planned) {
      const std::vector<const Step*> looked_at =
          first_of(groups.at({program.golden, program.actual}));
      const auto tokens_in = [&](const RunSide& side, const SideStep& step) {
        return seen_in(side, step).tokens;
      };
      choose_rows({golden_side_, actual_side_, looked_at, tokens_in}, program);
    }
    plan_alone(*alignment, places, planned);
    auto out = carry_out(golden_, actual_, golden_programs_, actual_programs_,
                         std::move(*alignment), std::move(planned), options_.level);
    out.method = places ? places->method : method_without_places();
    out.notes.insert(out.notes.begin(), notes_.begin(), notes_.end());
    out.weighed = std::move(weighed_);
    return out;
  }

 private:
  std::string method_without_places() const {
    const std::string how = "by the types and order of operations";
    return golden_has_data_ && actual_has_data_ ? "by the values of tensors, and " + how : how;
  }

  static std::vector<const Step*> first_of(const std::vector<const Step*>& steps) {
    return {steps.begin(),
            steps.begin() + static_cast<ptrdiff_t>(std::min(kRoundsLookedAt, steps.size()))};
  }

  // Two runs of the same graphs have the same programs. One may have recorded rounds in which only
  // one of its graphs ran.
  void split_alike(const PlaceMap& places) {
    if (golden_->traits.rounds != actual_->traits.rounds || !golden_->graphs.empty()) return;
    if (actual_programs_.size() < golden_programs_.size()) {
      actual_programs_ = programs_like(*actual_, places.golden_of, golden_programs_);
    } else if (golden_programs_.size() < actual_programs_.size()) {
      std::vector<uint32_t> actual_of(golden_->operations.size(), kNoOperation);
      for (uint32_t a = 0; a < places.golden_of.size(); ++a)
        if (places.golden_of[a] != kNoOperation) actual_of[places.golden_of[a]] = a;
      golden_programs_ = programs_like(*golden_, actual_of, actual_programs_);
    }
  }

  // Values of a layer, or of everything where there are no layers.
  const Segment& first_segment(const RunSide& side, size_t program) const {
    const Program& p = side.programs[program];
    return p.layers.empty() ? p.outside : p.layers.front();
  }

  const Seen& seen_in(const RunSide& side, const SideStep& step) {
    const auto key = std::tuple(&side == &golden_side_, step.program, step.round);
    const auto known = seen_.find(key);
    if (known != seen_.end()) return known->second;
    return seen_[key] = seen_of(side, step, first_segment(side, step.program));
  }

  // What both sides worked on. One side may have padded or have another batch; torch knows how many
  // sequences there are. Where the shapes of one side do not tell it, it may be as many as on the
  // other.
  std::pair<Tokens, Tokens> tokens_of(const Step& step) {
    const Seen& golden_seen = seen_in(golden_side_, step.golden);
    const Seen& actual_seen = seen_in(actual_side_, step.actual);
    Tokens golden = golden_seen.tokens;
    Tokens actual = actual_seen.tokens;
    if (golden.count == 0 && may_have(golden_seen.shapes, actual)) golden = actual;
    if (actual.count == 0 && may_have(actual_seen.shapes, golden)) actual = golden;
    const std::optional<RowPair> rows = rows_of(step);
    if (rows && rows->golden) {
      golden.choice = rows->golden;
      actual.choice = rows->actual;
      golden.sequences = actual.sequences = rows->golden->last.size();
      return {golden, actual};
    }
    if (golden.count == actual.count)
      golden.sequences = actual.sequences = std::max(golden.sequences, actual.sequences);
    golden.looked_at = actual.looked_at = std::min(golden.count, actual.count);
    const Tokens& smaller = golden.count < actual.count ? golden : actual;
    golden.length = actual.length = smaller.count / std::max<size_t>(smaller.sequences, 1);
    // Rows of which nobody knows which go together tell nothing.
    if (golden.count != actual.count && !rows) golden.count = actual.count = 0;
    return {golden, actual};
  }

  // Which rows of the two sides are the same tokens in a step; see find_rows. Where nothing asks for
  // it, or nothing was recorded that could tell it, row i is row i.
  std::optional<RowPair> rows_of(const Step& step) {
    const auto key =
        std::tuple(step.golden.program, step.golden.round, step.actual.program, step.actual.round);
    const auto known = rows_.find(key);
    if (known != rows_.end()) return known->second;
    const Tokens& golden = seen_in(golden_side_, step.golden).tokens;
    const Tokens& actual = seen_in(actual_side_, step.actual).tokens;
    const size_t sequences = std::max(golden.sequences, actual.sequences);
    const bool is_open =
        golden.count != actual.count || (sequences > 1 && sequences < golden.count);
    std::optional<RowPair> found = RowPair{};
    if (is_open && golden.count > 0 && actual.count > 0 && golden_->graphs.empty() &&
        actual_->graphs.empty()) {
      const RowsSide golden_rows = rows_side(golden_side_, step.golden, golden);
      const RowsSide actual_rows = rows_side(actual_side_, step.actual, actual);
      auto by_rows = find_rows(golden_rows, actual_rows, sequences_);
      if (by_rows || (!golden_rows.tables.empty() && !actual_rows.tables.empty()))
        found = std::move(by_rows);
      if (sequences_.empty() && found && found->golden) sequences_ = found->sequences;
    }
    return rows_[key] = found;
  }

  // Tensors from before the first layer, which hold what tokens are, and where they stand.
  RowsSide rows_side(const RunSide& side, const SideStep& step, const Tokens& tokens) {
    constexpr size_t kEnough = 6;
    RowsSide out{
        tokens,
        side.recording.traits.batch == capture::Traits::Batch::kPacked,
        {},
        find_padding(side, step),
        feeding_.positions_of(&side == &golden_side_, step).value_or(std::vector<int64_t>{})};
    const Program& program = side.programs[step.program];
    const auto read = [&](const Segment& segment, bool inputs) {
      for (const Value& value : values_of(side.recording, segment)) {
        const uint32_t operation = segment.operation_at(value.position);
        const auto round = round_of(side, step, operation);
        const uint32_t slot = slot_of(side.recording, segment, value);
        const bool comes_first =
            program.layers.empty() || operation < program.layers[0].operations[0];
        if (value.is_output() == inputs || (!inputs && (!comes_first || !value.is_leaf)) ||
            !round || !side.recording.has(0, *round, slot) || out.tables.size() == kEnough)
          continue;
        RowTable table = read_table(side.recording.record(0, *round, slot), tokens);
        if (!table.empty()) out.tables.push_back(std::move(table));
      }
    };
    read(program.outside, false);
    if (!program.layers.empty()) read(program.layers[0], true);
    return out;
  }

  Evidence weigh_segments(const Step& step, const Segment& golden,
                          const std::vector<Value>& golden_values, const Segment& actual,
                          const std::vector<Value>& actual_values) {
    const auto [golden_tokens, actual_tokens] = tokens_of(step);
    return weigh(segment_round(golden_side_, step.golden, golden, golden_values, golden_tokens),
                 segment_round(actual_side_, step.actual, actual, actual_values, actual_tokens));
  }

  // How many pairs of values of two segments could be compared as wholes, and how many are near.
  struct Agreement {
    size_t compared = 0;
    size_t near = 0;
  };
  Agreement agreement_of(const Step& step, const Segment& golden, const Segment& actual) {
    const Evidence evidence = weigh_segments(step, golden, values_of(*golden_, golden), actual,
                                             values_of(*actual_, actual));
    Agreement out;
    for (const Evidence::PairFacts& facts : evidence.pairs) {
      if (!facts.whole) continue;
      ++out.compared;
      if (facts.whole->distance.value <= kSameInput && facts.whole->distance.agrees()) ++out.near;
    }
    return out;
  }

  // Token ids and positions decide, where they were recorded, or else what goes into the layers. The
  // data of a layer may differ because of a fault in it.
  std::optional<bool> worked_on_the_same(const Step& step) {
    const FedTokens fed = feeding_.at(step);
    if (fed.positions == Fed::kOther && !step.is_prefill) return false;
    if (fed.tokens != Fed::kUnknown) return fed.tokens == Fed::kSame;
    if (!rows_of(step)) return false;  // however they are arranged
    return data_agree(step);
  }

  std::optional<bool> data_agree(const Step& step) {
    const Agreement found = agreement_of(step, first_segment(golden_side_, step.golden.program),
                                         first_segment(actual_side_, step.actual.program));
    if (found.compared == 0) return std::nullopt;
    return found.near > 0;
  }

  // Which golden layer each of my layers corresponds to. Where one side has fewer, they are taken
  // for those of the other side from the layer on with which its first one agrees best.
  std::vector<std::pair<size_t, size_t>> pair_layers(const Program& golden, const Program& actual,
                                                     const Step& step) {
    const size_t g = golden.layers.size();
    const size_t a = actual.layers.size();
    size_t golden_first = 0;
    size_t actual_first = 0;
    if (g != a && g > 0 && a > 0) {
      size_t most = 0;
      size_t& longer_first = g > a ? golden_first : actual_first;
      for (size_t first = 0; first <= (g > a ? g - a : a - g); ++first) {
        const size_t near =
            agreement_of(step, golden.layers[g > a ? first : 0], actual.layers[g > a ? 0 : first])
                .near;
        if (near <= most) continue;
        most = near;
        longer_first = first;
      }
      notes_.push_back("the numbers of layers differ (golden: " + std::to_string(g) +
                       ", my side: " + std::to_string(a) + "): layer " +
                       std::to_string(actual_first) + " of my side is compared with layer " +
                       std::to_string(golden_first) + " of golden, " +
                       (most > 0 ? "where the data agree best"
                                 : "because the data do not show which layers correspond"));
    }
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t i = 0; golden_first + i < g && actual_first + i < a; ++i)
      out.emplace_back(golden_first + i, actual_first + i);
    return out;
  }

  PlannedProgram plan_by_data(const std::pair<size_t, size_t>& programs,
                              const std::vector<const Step*>& steps) {
    Program golden = golden_programs_[programs.first];
    Program actual = actual_programs_[programs.second];
    // A compiled graph is a mere row of operations: the layers of the other side are one, too.
    if (golden.layers.empty() != actual.layers.empty()) {
      forget_layers(golden);
      forget_layers(actual);
    }
    PlannedProgram out{programs.first, programs.second, {}};
    const std::vector<const Step*> looked_at = first_of(steps);
    const auto layers = pair_layers(golden, actual, *looked_at.front());

    // Layers of the same structure on both sides are one case.
    std::map<std::string, std::vector<std::pair<size_t, size_t>>> cases;
    for (const auto& [g, a] : layers)
      cases[structure_of(*golden_, golden.layers[g]) + "|" +
            structure_of(*actual_, actual.layers[a]) + "|" +
            numbers_in(*golden_, golden.layers[g]) + "|" + numbers_in(*actual_, actual.layers[a])]
          .emplace_back(g, a);
    for (const auto& [structure, members] : cases) {
      std::vector<std::pair<const Segment*, const Segment*>> segments;
      for (const auto& [g, a] : members)
        segments.emplace_back(&golden.layers[g], &actual.layers[a]);
      plan_segments(segments, looked_at, out);
    }
    plan_segments({{&golden.outside, &actual.outside}}, looked_at, out);

    std::set<size_t> golden_done;
    std::set<size_t> actual_done;
    for (const auto& [g, a] : layers) {
      golden_done.insert(g);
      actual_done.insert(a);
    }
    for (size_t i = 0; i < golden.layers.size(); ++i)
      if (!golden_done.contains(i)) leave_alone(golden.layers[i], true, out);
    for (size_t i = 0; i < actual.layers.size(); ++i)
      if (!actual_done.contains(i)) leave_alone(actual.layers[i], false, out);
    return out;
  }

  void leave_alone(const Segment& segment, bool is_golden, PlannedProgram& out) const {
    const Recording& recording = is_golden ? *golden_ : *actual_;
    for (const Value& value : values_of(recording, segment)) {
      if (!is_row(value, segment, is_golden)) continue;
      PlannedPair pair = lonely(recording, slot_of(recording, segment, value), is_golden);
      pair.alone = "the other run has no such layer.";
      out.pairs.push_back(std::move(pair));
    }
  }

  void note_too_many(size_t golden_values, size_t actual_values) {
    notes_.push_back("no layers were found among " + std::to_string(golden_values) +
                     " tensors of golden and " + std::to_string(actual_values) +
                     " of my side, too many to compare all with all: a tensor was compared only "
                     "with tensors at about the same place in the other run");
  }

  // Whether a value without a partner is a row of the report. What goes into a module is the output
  // of another one, as far as outputs were recorded; what lies before a segment is a row of its own
  // segment.
  bool is_row(const Value& value, const Segment& segment, bool is_golden) const {
    const bool has_outputs = is_golden ? golden_has_outputs_ : actual_has_outputs_;
    return (value.is_output() || !has_outputs) && value.position < segment.operations.size();
  }

  static PlannedPair lonely(const Recording& recording, uint32_t slot, bool is_golden) {
    PlannedPair pair;
    (is_golden ? pair.golden : pair.actual) = {slot};
    if (recording.ranks.size() > 1)
      (is_golden ? pair.form.golden_ranks : pair.form.actual_ranks) = RankUse::kEach;
    return pair;
  }

  // Programs for the rounds that have no counterpart.
  void plan_alone(const Alignment& alignment, const std::optional<PlaceMap>& places,
                  std::vector<PlannedProgram>& planned) const {
    std::set<std::pair<size_t, size_t>> done;
    for (const Step& step : alignment.alone) {
      const bool is_golden = step.actual.round == kNoRound;
      const std::pair<size_t, size_t> programs = {is_golden ? step.golden.program : kNoProgram,
                                                  is_golden ? kNoProgram : step.actual.program};
      if (!done.insert(programs).second) continue;
      if (places) {
        // As if the other run had no operations at all.
        PlaceMap nowhere;
        nowhere.golden_of.assign(actual_->operations.size(), kNoOperation);
        const Program nothing;
        planned.push_back(plan_by_place(
            *golden_, is_golden ? golden_programs_[programs.first] : nothing, *actual_,
            is_golden ? nothing : actual_programs_[programs.second], nowhere, programs));
        continue;
      }
      const Program& program =
          is_golden ? golden_programs_[programs.first] : actual_programs_[programs.second];
      PlannedProgram& out =
          planned.emplace_back(PlannedProgram{programs.first, programs.second, {}});
      for (const Segment& layer : program.layers) leave_alone(layer, is_golden, out);
      leave_alone(program.outside, is_golden, out);
    }
  }

  // Looks at some of the segments, which all have the same structure, and pairs all of them.
  void plan_segments(const std::vector<std::pair<const Segment*, const Segment*>>& segments,
                     const std::vector<const Step*>& steps, PlannedProgram& out,
                     const SettledValues& settled = {}) {
    const std::vector<Value> golden_values = values_of(*golden_, *segments[0].first);
    const std::vector<Value> actual_values = values_of(*actual_, *segments[0].second);
    std::vector<Evidence> evidence;
    std::vector<std::string> places;
    const size_t count = std::min(kLayersLookedAt, segments.size());
    for (const Step* step : steps) {
      for (size_t i = 0; i < count; ++i) {
        const size_t at = count == 1 ? 0 : i * (segments.size() - 1) / (count - 1);
        evidence.push_back(weigh_segments(*step, *segments[at].first, golden_values,
                                          *segments[at].second, actual_values));
        places.push_back("token " + step->token + place_of(*segments[at].second));
        evidence.back().layer = at;
      }
    }
    if (std::any_of(evidence.begin(), evidence.end(),
                    [](const Evidence& each) { return !each.is_whole(); }))
      note_too_many(golden_values.size(), actual_values.size());
    const SegmentMatch match = match_segment({*golden_, *segments[0].first, golden_values},
                                             {*actual_, *segments[0].second, actual_values},
                                             evidence, options_.mappings, settled);
    for (const auto& [golden_segment, actual_segment] : segments)
      weigh_again({*golden_, *golden_segment, golden_values},
                  {*actual_, *actual_segment, actual_values}, evidence, places);
    for (const auto& [golden_segment, actual_segment] : segments) {
      const auto golden_slot = [&, segment = golden_segment](uint32_t value) {
        return slot_of(*golden_, *segment, golden_values[value]);
      };
      const auto actual_slot = [&, segment = actual_segment](uint32_t value) {
        return slot_of(*actual_, *segment, actual_values[value]);
      };
      for (const Match& each : match.matches) {
        PlannedPair pair;
        pair.golden = {golden_slot(each.golden)};
        if (each.golden_too) pair.golden.push_back(golden_slot(*each.golden_too));
        pair.actual = {actual_slot(each.actual)};
        pair.form = each.form;
        pair.certainty = each.certainty;
        pair.why = each.why;
        out.pairs.push_back(std::move(pair));
      }
      add_lonely(match, {*golden_, *golden_segment, golden_values},
                 {*actual_, *actual_segment, actual_values}, out);
    }
  }

  // ", 3_Layer": the layer that a segment of mine is.
  std::string place_of(const Segment& segment) const {
    const bool is_layer =
        std::any_of(actual_programs_.begin(), actual_programs_.end(), [&](const Program& program) {
          return std::any_of(
              program.layers.begin(), program.layers.end(),
              [&](const Segment& layer) { return layer.operations == segment.operations; });
        });
    return is_layer ? ", " + actual_->operations[segment.operations.front()].name : "";
  }

  // Keeps what was weighed for the operation that a person asked for, if it is one of these.
  void weigh_again(const SegmentSide& golden, const SegmentSide& actual,
                   std::span<const Evidence> evidence, const std::vector<std::string>& places) {
    if (options_.why.empty()) return;
    for (const bool is_golden : {false, true}) {
      const SegmentSide& side = is_golden ? golden : actual;
      for (uint32_t i = 0; i < side.segment.operations.size(); ++i) {
        if (side.recording.operations[side.segment.operations[i]].name != options_.why) continue;
        const MatchProblem problem(golden, actual, evidence, options_.mappings);
        for (WeighedTensor& each : weighed_for(problem, is_golden, i, places))
          weighed_.push_back(std::move(each));
      }
    }
  }

  // Where one of the runs kept no data, a reason that was found from data would be misleading.
  static std::string why_alone(const std::string& found, const Recording& recording, uint32_t slot,
                               bool other_has_data, const std::string& other_option) {
    if (recording.slots[slot].kept != Kept::kBytes) return "its data were not kept.";
    return other_has_data ? found : "the data of " + other_option + " were not kept.";
  }

  void add_lonely(const SegmentMatch& match, const SegmentSide& golden, const SegmentSide& actual,
                  PlannedProgram& out) const {
    for (uint32_t g = 0; g < golden.values.size(); ++g) {
      if (match.golden_alone[g].empty() || !is_row(golden.values[g], golden.segment, true))
        continue;
      const uint32_t slot = slot_of(*golden_, golden.segment, golden.values[g]);
      PlannedPair pair = lonely(*golden_, slot, true);
      if (!match.golden_is_copy[g])
        pair.alone = why_alone(match.golden_alone[g], *golden_, slot, actual_has_data_, "my-path");
      out.pairs.push_back(std::move(pair));
    }
    for (uint32_t a = 0; a < actual.values.size(); ++a) {
      if (match.actual_alone[a].empty() || !is_row(actual.values[a], actual.segment, false))
        continue;
      const uint32_t slot = slot_of(*actual_, actual.segment, actual.values[a]);
      PlannedPair pair = lonely(*actual_, slot, false);
      pair.alone =
          why_alone(match.actual_alone[a], *actual_, slot, golden_has_data_, "golden-path");
      out.pairs.push_back(std::move(pair));
    }
  }

  SharedRecording golden_;
  SharedRecording actual_;
  const AutomaticOptions& options_;
  std::vector<Program> golden_programs_;
  std::vector<Program> actual_programs_;
  RunSide golden_side_;
  RunSide actual_side_;
  Feeding feeding_;
  bool golden_has_data_;
  bool actual_has_data_;
  bool golden_has_outputs_;
  bool actual_has_outputs_;
  std::map<std::tuple<bool, size_t, size_t>, Seen> seen_;
  std::map<std::tuple<size_t, size_t, size_t, size_t>, std::optional<RowPair>> rows_;
  std::vector<std::pair<uint32_t, uint32_t>> sequences_;  // golden's and mine, as the prompt told
  std::vector<std::string> notes_;
  std::vector<WeighedTensor> weighed_;
};

}  // namespace

Result<AutomaticPairs> pair_automatically(SharedRecording golden, SharedRecording actual,
                                          const AutomaticOptions& options) {
  ReadAhead disk(machine_memory_bytes() / kPartOfMemory);
  want_first_round(*golden, *actual, disk);
  return Automatic(std::move(golden), std::move(actual), options).run();
}

}  // namespace ait::match
