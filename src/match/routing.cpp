#include "match/routing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>

#include "match/plan.h"
#include "match/rows.h"
#include "match/votes.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;
using capture::Slot;
using By = Routed::By;

// More experts than a router gives a token to.
constexpr int64_t kMostChoices = 64;

// Whether each token has experts of its own: no two are the same.
bool is_choice(const Integers& found, size_t tokens, bool is_output) {
  if (found.shape.size() != 2 || static_cast<size_t>(found.shape[0]) != tokens ||
      found.shape[1] < (is_output ? 1 : 2) || found.shape[1] > kMostChoices)
    return false;
  const size_t each = static_cast<size_t>(found.shape[1]);
  for (size_t token = 0; token < tokens; ++token) {
    const auto first = found.numbers.begin() + static_cast<ptrdiff_t>(token * each);
    const std::set<int64_t> own(first, first + static_cast<ptrdiff_t>(each));
    if (own.size() < each || *own.begin() < 0) return false;
  }
  return true;
}

// "root.layers.0.mlp.experts.2.w1" in the layer "root.layers.0": the last number after it, and all
// that comes before that. The whole name where there is none.
std::pair<std::string, std::optional<uint32_t>> list_and_number(const std::string& name,
                                                                size_t after) {
  std::pair<std::string, std::optional<uint32_t>> out{name, std::nullopt};
  for (size_t at = name.find('.', after); at != std::string::npos; at = name.find('.', at + 1)) {
    const size_t end = std::min(name.find('.', at + 1), name.size());
    const std::string word = name.substr(at + 1, end - at - 1);
    if (word.empty() || word.size() > 6 ||
        word.find_first_not_of("0123456789") != std::string::npos)
      continue;
    out = {name.substr(0, at), static_cast<uint32_t>(std::stoul(word))};
  }
  return out;
}

// "root.a.silu" and 1 of "root.a#1.silu", what a function is called in the second call of root.a.
struct CallName {
  std::string module;
  uint32_t number = 0;
};
CallName call_of(const Recording& recording, const Slot& slot) {
  const std::string& name = recording.operations[slot.operation].name;
  const size_t hash = name.find('#');
  CallName out{name, slot.call};
  if (hash == std::string::npos) return out;
  const char* const end = name.data() + name.size();
  const auto [stop, bad] = std::from_chars(name.data() + hash + 1, end, out.number);
  out.module = name.substr(0, hash) + std::string(stop, end);
  return out;
}

std::optional<Shape> shape_in(const RunSide& side, const SideStep& step, uint32_t slot) {
  const auto round = round_of(side, step, side.recording.slots[slot].operation);
  if (!round || !side.recording.has(0, *round, slot)) return std::nullopt;
  return read_shape(side.recording.record(0, *round, slot));
}

// Whether an operation multiplies its input with this, or it is the gradient of that: a matrix of
// as many rows and columns as input and output have columns, beside these two. Its rows are none of
// tokens.
bool is_weight(const RunSide& side, const SideStep& step, uint32_t slot, const Shape& shape) {
  const Recording& recording = side.recording;
  const uint32_t operation = recording.slots[slot].operation;
  std::array<std::optional<uint32_t>, 2> first;  // input and output
  for (uint32_t i = recording.first_slot[operation]; i < recording.first_slot[operation + 1]; ++i)
    if (auto& of = first[recording.slots[i].direction == Direction::kOutput ? 1 : 0]; !of) of = i;
  if (shape.size() != 2 || !first[0] || !first[1] || slot == *first[0] || slot == *first[1])
    return false;
  const auto input = shape_in(side, step, *first[0]);
  const auto output = shape_in(side, step, *first[1]);
  if (!input || !output || input->empty() || output->empty()) return false;
  return std::minmax(shape[0], shape[1]) == std::minmax(input->back(), output->back());
}

// Whether calls have other numbers of rows from the last one to the first.
bool differs_backwards(const std::map<uint32_t, size_t>& rows_by_call) {
  std::vector<size_t> rows;
  rows.reserve(rows_by_call.size());
  for (const auto& [call, count] : rows_by_call) rows.push_back(count);
  return !std::equal(rows.begin(), rows.end(), rows.rbegin());
}

// Calls visit(slot) for all of a segment.
template <typename Visit>
void each_slot(const Recording& recording, const Segment& segment, const Visit& visit) {
  for (const uint32_t operation : segment.operations)
    for (uint32_t slot = recording.first_slot[operation];
         slot < recording.first_slot[operation + 1]; ++slot)
      visit(slot);
}

}  // namespace

std::optional<Integers> read_choice(const RunSide& side, const SideStep& step, uint32_t slot) {
  const auto round = round_of(side, step, side.recording.slots[slot].operation);
  if (!round || !side.recording.has(0, *round, slot)) return std::nullopt;
  auto found = read_integers(side.recording.record(0, *round, slot));
  if (found && found->shape.size() == 2) return found;
  return std::nullopt;
}

Routing::Routing(const RunSide& side, size_t program, const std::vector<Round>& rounds)
    : side_(side), rounds_(rounds) {
  const Program& p = side.programs[program];
  if (!p.layers.empty()) {
    // The first layers may have no experts, and every second one may have none.
    const size_t last = p.layers.size() - 1;
    const std::set<size_t> some = {0, last / 2, last - std::min<size_t>(last, 1), last};
    if (std::none_of(some.begin(), some.end(),
                     [&](size_t layer) { return may_be_mixture(p.layers[layer]); }))
      return;
    for (const Segment& layer : p.layers) look_at(layer);
    return;
  }
  // What repeats in a model of one layer are its experts (forget_experts()).
  Segment all;
  for (const uint32_t top : p.tops)
    for (uint32_t i = top; i < side.recording.operations[top].end; ++i) all.operations.push_back(i);
  if (may_be_mixture(all)) look_at(all);
}

// Whether it has rows that are not those of the tokens, or the choice of a router: its experts may have
// got all tokens. Integers are no rows: positions and masks have other shapes than what they are of.
bool Routing::may_be_mixture(const Segment& segment) const {
  bool found = false;
  for (const Round& round : rounds_)
    each_slot(side_.recording, segment, [&](uint32_t slot) {
      if (found || round.tokens.count == 0) return;
      const auto shape = shape_in(side_, round.step, slot);
      if (!shape || shape->size() != 2 || is_weight(side_, round.step, slot, *shape)) return;
      const bool has_other_rows = static_cast<size_t>((*shape)[0]) != round.tokens.count;
      if (!has_other_rows && (*shape)[1] > kMostChoices) return;
      const auto choice = read_choice(side_, round.step, slot);
      const bool is_output = side_.recording.slots[slot].direction == Direction::kOutput;
      found = choice ? is_choice(*choice, round.tokens.count, is_output) : has_other_rows;
    });
  return found;
}

void Routing::look_at(const Segment& segment) {
  const Recording& recording = side_.recording;
  const bool has_modules = recording.traits.types == capture::Traits::Types::kModules;
  const std::string& layer = recording.operations[segment.operations.front()].name;
  std::set<std::string> called_again;
  std::optional<uint32_t> chosen;
  std::map<std::pair<uint32_t, size_t>, size_t> rows;  // of a slot in a round, of matrices
  std::vector<std::optional<Integers>> choices(rounds_.size());
  each_slot(recording, segment, [&](uint32_t slot) {
    const Slot& it = recording.slots[slot];
    if (CallName call = call_of(recording, it); call.number > 0)
      called_again.insert(std::move(call.module));
    for (size_t i = 0; i < rounds_.size(); ++i) {
      const auto shape = shape_in(side_, rounds_[i].step, slot);
      if (!shape || shape->size() != 2 || is_weight(side_, rounds_[i].step, slot, *shape)) continue;
      const auto round = round_of(side_, rounds_[i].step, it.operation);
      auto integers = read_integers(recording.record(0, *round, slot));
      if (!integers) rows[{slot, i}] = static_cast<size_t>((*shape)[0]);
      if (!integers || (chosen && *chosen != slot) ||
          !is_choice(*integers, rounds_[i].tokens.count, it.direction == Direction::kOutput))
        continue;
      chosen = slot;
      choices[i] = std::move(integers);
    }
  });

  // Tensors that are routed alike, by what they may be in turn: those of all experts in a list, of
  // all calls of a module, one of all experts.
  for (const By by : {By::kExpert, By::kCall, By::kAll}) {
    std::map<std::string, std::map<uint32_t, Routed>> families;
    each_slot(recording, segment, [&](uint32_t slot) {
      const std::string& name = recording.operations[recording.slots[slot].operation].name;
      const auto [list, number] = list_and_number(name, name.starts_with(layer) ? layer.size() : 0);
      const CallName call = call_of(recording, recording.slots[slot]);
      const bool is_again = called_again.contains(call.module);
      if (routed_.contains(slot)) return;
      if (by == By::kExpert && has_modules && number)
        families[list][slot] = {by, *number};
      else if (by == By::kCall && has_modules && is_again)
        families[call.module][slot] = {by, call.number};
      else if (by == By::kAll && !is_again)
        families[std::to_string(slot)][slot] = {by, 0};
    });
    for (auto& [name, family] : families) {
      bool is_routed = false;
      bool is_proven = chosen.has_value();
      std::set<uint32_t> numbers;
      std::vector<std::map<uint32_t, size_t>> counts(rounds_.size());  // of rows, by number
      for (const auto& [slot, routed] : family) {
        numbers.insert(routed.number);
        for (size_t i = 0; i < rounds_.size(); ++i) {
          const auto found = rows.find({slot, i});
          if (found == rows.end()) continue;
          is_routed |= found->second != rounds_[i].tokens.count;
          is_routed |= by != By::kAll && choices[i];  // each may have got all tokens
          if (found->second > 0) counts[i][routed.number] = found->second;
          if (choices[i]) is_proven &= found->second == count_rows(routed, *choices[i]);
        }
      }
      // The only layer has a number, too, and the rows of an expert that got all tokens.
      is_proven &= by != By::kExpert || numbers.size() > 1;
      // What is numbered may be layers, and what has other rows a cache.
      const bool may_be =
          by == By::kCall || is_proven || (by == By::kExpert && !chosen && numbers.size() > 1);
      if (!is_routed || !may_be) continue;
      calls_are_proven_ &= by != By::kCall || !chosen || is_proven;
      for (size_t i = 0; by == By::kCall && i < rounds_.size(); ++i)
        calls_tell_order_ |= choices[i] && differs_backwards(counts[i]);
      for (auto& [slot, routed] : family) {
        routed.layer = segment.operations.back();
        routed.is_proven = is_proven;
        routed_[slot] = routed;
      }
    }
  }
  if (chosen) chosen_[segment.operations.back()] = *chosen;
}

Routed Routing::of(uint32_t slot) const {
  const auto found = routed_.find(slot);
  return found == routed_.end() ? Routed{} : found->second;
}

std::optional<uint32_t> Routing::chosen_for(uint32_t slot) const {
  const auto found = chosen_.lower_bound(side_.recording.slots[slot].operation);
  if (found == chosen_.end()) return std::nullopt;
  return found->second;
}

namespace {

class RowChooser {
 public:
  RowChooser(const RoutedRuns& runs, PlannedProgram& program)
      : runs_(runs),
        program_(program),
        golden_rounds_(rounds_of(true)),
        actual_rounds_(rounds_of(false)),
        golden_routing_(runs.golden, program.golden, golden_rounds_),
        actual_routing_(runs.actual, program.actual, actual_rounds_) {}

  void run() {
    if (golden_routing_.empty() && actual_routing_.empty()) return;
    find_experts();
    look_at_calls();
    std::vector<PlannedPair> kept;
    for (PlannedPair& pair : program_.pairs) {
      if (pair.golden.size() != 1 || pair.actual.size() != 1 || pair.golden_is_mine) {
        kept.push_back(std::move(pair));
        continue;
      }
      const Routed golden = golden_routing_.of(pair.golden[0]);
      const Routed actual = actual_routing_.of(pair.actual[0]);
      if (golden.by == By::kNobody && actual.by == By::kNobody) {
        kept.push_back(std::move(pair));
      } else if (may_correspond(golden, actual, pair)) {
        route(golden, actual, pair);
        kept.push_back(std::move(pair));
      } else {
        take_apart(pair, kept);
      }
    }
    program_.pairs = std::move(kept);
    find_orders();
    find_orders_of_experts();
  }

 private:
  std::vector<Routing::Round> rounds_of(bool is_golden) const {
    const RunSide& side = is_golden ? runs_.golden : runs_.actual;
    std::vector<Routing::Round> out;
    for (const Step* step : runs_.steps) {
      const SideStep& own = is_golden ? step->golden : step->actual;
      out.push_back({own, runs_.tokens_in(side, own)});
    }
    return out;
  }

  // All rows of a pair's tensor in one of the rounds that are looked at.
  RowTable read_rows(bool is_golden, const PlannedPair& pair, size_t round) const {
    const uint32_t slot = (is_golden ? pair.golden : pair.actual)[0];
    const RunSide& side = is_golden ? runs_.golden : runs_.actual;
    const SideStep& step = is_golden ? runs_.steps[round]->golden : runs_.steps[round]->actual;
    const auto shape = shape_in(side, step, slot);
    if (!shape || shape->size() != 2) return {};
    const auto at = round_of(side, step, side.recording.slots[slot].operation);
    return read_table(side.recording.record(0, *at, slot), {static_cast<size_t>((*shape)[0]), 1},
                      is_golden ? pair.form.golden : pair.form.actual);
  }

  static bool is_by_data(const PlannedPair& pair) {
    return pair.form.distance.agrees() && pair.form.distance.value <= kVotable;
  }

  bool are_outputs(const PlannedPair& pair) const {
    const auto is_output = [](const RunSide& side, uint32_t slot) {
      return side.recording.slots[slot].direction == Direction::kOutput;
    };
    return is_output(runs_.golden, pair.golden[0]) && is_output(runs_.actual, pair.actual[0]);
  }

  // Whether my experts have golden's numbers, and their calls golden's order, as far as data show it.
  void find_experts() {
    for (const PlannedPair& pair : program_.pairs) {
      if (pair.golden.size() != 1 || pair.actual.size() != 1 || !is_by_data(pair)) continue;
      const Routed golden = golden_routing_.of(pair.golden[0]);
      const Routed actual = actual_routing_.of(pair.actual[0]);
      // Any expert may be given the same tokens, and only one makes this of them.
      if (golden.by == By::kExpert && actual.by == By::kExpert && are_outputs(pair)) {
        are_numbered_alike_ &= golden.number == actual.number;
        experts_[{golden.layer, golden.number}].insert(actual.number);
      }
      if (golden.by == By::kCall && actual.by == By::kCall)
        calls_cross_ |= golden.number != actual.number;
    }
  }

  // Whether calls have the rows of the same call of the other run, or of another one.
  void look_at_calls() {
    std::map<std::string, std::vector<const PlannedPair*>> tensors;
    for (const PlannedPair& pair : program_.pairs) {
      if (pair.golden.size() != 1 || pair.actual.size() != 1 ||
          golden_routing_.of(pair.golden[0]).by != By::kCall ||
          actual_routing_.of(pair.actual[0]).by != By::kCall)
        continue;
      const Slot& slot = runs_.golden.recording.slots[pair.golden[0]];
      tensors[call_of(runs_.golden.recording, slot).module + "/" + slot.tensor()].push_back(&pair);
    }
    const auto agree = [&](const PlannedPair& one, const PlannedPair& other, size_t round) {
      return rows_agree(read_rows(true, one, round), read_rows(false, other, round));
    };
    for (const auto& [name, calls] : tensors)
      for (size_t round = 0; calls.size() > 1 && round < runs_.steps.size(); ++round)
        for (const PlannedPair* one : calls) {
          calls_are_equal_ &=
              read_rows(true, *one, round).size() == read_rows(false, *one, round).size();
          if (agree(*one, *one, round)) {
            calls_agree_ = true;
          } else if (std::any_of(calls.begin(), calls.end(), [&](const PlannedPair* other) {
                       return other != one && agree(*one, *other, round);
                     })) {
            calls_cross_ = true;
          }
        }
  }

  // Where no router was recorded, what is called again need not be experts.
  bool calls_correspond(const PlannedPair& pair) const {
    if (!golden_routing_.chosen_for(pair.golden[0]) || !actual_routing_.chosen_for(pair.actual[0]))
      return calls_are_equal_;
    return golden_routing_.calls_are_proven() && actual_routing_.calls_are_proven() &&
           (calls_agree_ ||
            (golden_routing_.calls_tell_order() && actual_routing_.calls_tell_order()));
  }

  bool may_correspond(const Routed& golden, const Routed& actual, const PlannedPair& pair) const {
    // Where no router says so, what is numbered and has other rows need not be experts.
    if (golden.by != actual.by)
      return is_by_data(pair) && !golden.is_proven && !actual.is_proven && golden.by != By::kCall &&
             actual.by != By::kCall;
    if (golden.by == By::kExpert) {
      const auto known = experts_.find({golden.layer, golden.number});
      return known != experts_.end() ? known->second == std::set<uint32_t>{actual.number}
                                     : golden.number == actual.number && are_numbered_alike_;
    }
    // The second call is of the second expert that some token was given to.
    if (golden.by == By::kCall)
      return golden.number == actual.number && !calls_cross_ && calls_correspond(pair);
    return true;
  }

  void route(const Routed& golden, const Routed& actual, PlannedPair& pair) {
    pair.form.fit = Fit::kNone;
    const auto golden_choice = golden_routing_.chosen_for(pair.golden[0]);
    const auto actual_choice = actual_routing_.chosen_for(pair.actual[0]);
    if (!golden_choice || !actual_choice || !golden.is_proven || !actual.is_proven) return;
    pair.routed = std::make_shared<RoutedPair>(
        RoutedPair{{*golden_choice, golden}, {*actual_choice, actual}});
  }

  void take_apart(PlannedPair& pair, std::vector<PlannedPair>& out) const {
    for (const bool is_golden : {true, false}) {
      const Recording& recording = (is_golden ? runs_.golden : runs_.actual).recording;
      const std::vector<uint32_t>& slots = is_golden ? pair.golden : pair.actual;
      if (recording.slots[slots[0]].direction != Direction::kOutput) continue;
      PlannedPair alone;
      (is_golden ? alone.golden : alone.actual) = slots;
      alone.form.golden_ranks = pair.form.golden_ranks;
      alone.form.actual_ranks = pair.form.actual_ranks;
      alone.alone =
          "its rows are those of experts, and nothing says which of the other run's are "
          "of the same.";
      out.push_back(std::move(alone));
    }
  }

  // Rows of all experts may stand by expert or by token, which is the same in all layers.
  void find_orders() {
    bool is_rearranged = false;
    for (const PlannedPair& pair : program_.pairs) {
      if (!pair.routed || pair.routed->golden.routed.by != By::kAll) continue;
      for (size_t round = 0; round < runs_.steps.size(); ++round) {
        const RowTable golden = read_rows(true, pair, round);
        const RowTable actual = read_rows(false, pair, round);
        is_rearranged |= !golden.empty() && golden.size() == actual.size() &&
                         !rows_agree(golden, actual) &&
                         pair_rows(golden, actual).size() == golden.size();
      }
    }
    if (!is_rearranged) return;
    for (PlannedPair& pair : program_.pairs)
      if (pair.routed && pair.routed->golden.routed.by == By::kAll) {
        RoutedPair routed = *pair.routed;
        routed.is_rearranged = true;
        pair.routed = std::make_shared<RoutedPair>(routed);
      }
  }

  // Rows of one expert may lie by token or by choice, which is the same for all experts of a run.
  void find_orders_of_experts() {
    uint8_t orders = kAnyOrders;
    for (const PlannedPair& pair : program_.pairs) {
      if (!is_of_one_expert(pair)) continue;
      for (size_t round = 0; round < runs_.steps.size(); ++round) {
        const Step& step = *runs_.steps[round];
        const auto golden = read_choice(runs_.golden, step.golden, pair.routed->golden.chosen);
        const auto actual = read_choice(runs_.actual, step.actual, pair.routed->actual.chosen);
        if (!golden || !actual) continue;
        const uint8_t told = orders_by_data(
            *pair.routed, *golden, *actual,
            [&](bool is_golden, size_t) { return read_rows(is_golden, pair, round); });
        if ((orders & told) != 0) orders = static_cast<uint8_t>(orders & told);
      }
    }
    // What data leave open is the same in both runs.
    constexpr uint8_t kSameOrder = kBothByToken | kBothByChoice;
    if ((orders & kSameOrder) != 0) orders = static_cast<uint8_t>(orders & kSameOrder);
    for (PlannedPair& pair : program_.pairs)
      if (is_of_one_expert(pair)) {
        RoutedPair routed = *pair.routed;
        routed.orders = orders;
        pair.routed = std::make_shared<RoutedPair>(routed);
      }
  }

  static bool is_of_one_expert(const PlannedPair& pair) {
    return pair.routed && pair.routed->golden.routed.by != By::kAll;
  }

  const RoutedRuns& runs_;
  PlannedProgram& program_;
  std::vector<Routing::Round> golden_rounds_;
  std::vector<Routing::Round> actual_rounds_;
  Routing golden_routing_;
  Routing actual_routing_;
  // [layer, golden's number]: those of mine, as data show it.
  std::map<std::pair<uint32_t, uint32_t>, std::set<uint32_t>> experts_;
  bool are_numbered_alike_ = true;
  bool calls_cross_ = false;     // one has the data of another call
  bool calls_are_equal_ = true;  // they have as many rows as the same calls of the other run
  bool calls_agree_ = false;     // some of them, which might be of another expert
};

}  // namespace

void choose_rows(const RoutedRuns& runs, PlannedProgram& program) {
  RowChooser(runs, program).run();
}

}  // namespace ait::match
