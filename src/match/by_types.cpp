#include "match/by_types.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "match/data_flow.h"
#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Operation;
using capture::OpKind;
using capture::Recording;
using Types = capture::Traits::Types;

// Of two operations that hold others, so many have to correspond: a single one says little.
constexpr size_t kFewestInside = 2;

// Kinds of work that both sides do. No module corresponds to a cache, to quantising or to moving
// data.
constexpr OpKind kKinds[] = {OpKind::kEmbedding,  OpKind::kNorm,      OpKind::kLinear,
                             OpKind::kActivation, OpKind::kAttention, OpKind::kAdd,
                             OpKind::kMultiply};

// Looking up rows of a table is an embedding where what it is part of is one.
bool does(const SegmentSide& side, const Value& value, OpKind kind) {
  if (value.kind == kind) return true;
  const uint32_t parent = side.operation_of(value).parent;
  return kind == OpKind::kEmbedding && value.kind == OpKind::kMove &&
         parent != capture::kNoOperation && side.recording.operations[parent].kind == kind;
}

// Whether a module is a projection that consists of others: one with an adapter beside it.
bool is_adapted(const Recording& recording, uint32_t operation) {
  return recording.traits.types == Types::kModules &&
         recording.operations[operation].kind == OpKind::kLinear && !is_leaf(recording, operation);
}

// The projection with an adapter that an operation is a part of; kNoOperation for none.
uint32_t adapted_around(const Recording& recording, uint32_t operation) {
  uint32_t above = recording.operations[operation].parent;
  while (above != capture::kNoOperation && !is_adapted(recording, above))
    above = recording.operations[above].parent;
  return above;
}

// Whether an activation of a library multiplies, too: what comes before it is a projection twice as
// wide as it, the gate and what is gated. No module does the work of both.
bool multiplies(const SegmentSide& side, uint32_t value, std::span<const Evidence> all,
                std::vector<Evidence::ValueFacts> Evidence::* facts) {
  if (side.recording.traits.types == Types::kModules) return false;
  uint32_t before = value;
  while (before > 0 && !side.values[before - 1].is_leaf) --before;
  if (before == 0 || side.values[before - 1].kind != OpKind::kLinear) return false;
  return std::any_of(all.begin(), all.end(), [&](const Evidence& evidence) {
    const size_t columns = (evidence.*facts)[value].columns;
    return columns > 0 && (evidence.*facts)[before - 1].columns == 2 * columns;
  });
}

// First outputs of the leaves that do this kind of work.
std::vector<uint32_t> workers(const SegmentSide& side, OpKind kind) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < side.values.size(); ++i) {
    const Value& value = side.values[i];
    const uint32_t operation = side.segment.operation_at(value.position);
    const bool is_whole = value.is_leaf || is_adapted(side.recording, operation);
    if (is_whole && value.is_output() && value.index == 0 && does(side, value, kind) &&
        adapted_around(side.recording, operation) == capture::kNoOperation)
      out.push_back(i);
  }
  return out;
}

// Whether an operation has a twin: another one of its size and parent. Layers have, unless there is
// only one.
bool has_twin(const Recording& recording, uint32_t operation) {
  const Operation& one = recording.operations[operation];
  for (uint32_t other = 0; other < recording.operations.size(); ++other)
    if (other != operation && recording.operations[other].parent == one.parent &&
        recording.operations[other].end - other == one.end - operation)
      return true;
  return false;
}

// The first output of the layer: of the operation that holds all of the segment and has a twin, or,
// in a model of one layer, of the innermost one that holds half of it, and a norm and an activation.
// Half alone says nothing: the attention of a layer may hold more than all the rest.
uint32_t layer_output(const SegmentSide& side) {
  const Recording& recording = side.recording;
  const std::vector<uint32_t>& operations = side.segment.operations;
  uint32_t layer = kNoValue;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const uint32_t end = recording.operations[operations[i]].end;
    size_t inside = 0;
    bool has_norm = false;
    bool has_activation = false;
    for (const uint32_t other : operations) {
      if (other < operations[i] || other >= end) continue;
      ++inside;
      has_norm |= recording.operations[other].kind == OpKind::kNorm;
      has_activation |= recording.operations[other].kind == OpKind::kActivation;
    }
    if (inside < 2 || 2 * inside < operations.size()) continue;
    if (has_norm && has_activation) layer = i;
    if (inside == operations.size() && has_twin(recording, operations[i])) {
      layer = i;
      break;
    }
  }
  return layer == kNoValue ? kNoValue : find_value(side, layer, Direction::kOutput, 0);
}

class TypePairing {
 public:
  TypePairing(const MatchProblem& problem, std::span<const Match> matches)
      : problem_(problem),
        golden_partial_(partial_sums(problem.golden)),
        actual_partial_(partial_sums(problem.actual)) {
    for (const Match& match : matches) {
      actual_used_.insert(match.actual);
      found_.emplace_back(match.golden, match.actual);
      const bool is_whole =
          match.form.golden.taken == 0 && match.form.actual.taken == 0 && !match.golden_too;
      if (is_whole) settled_.emplace_back(match.golden, match.actual);
      if (const uint32_t whole = whole_around(match.golden, match.actual); whole != kNoValue) {
        golden_used_.insert(whole);
        if (is_whole) settled_.emplace_back(whole, match.actual);
      }
    }
    for (const Match& match : matches)
      if (!is_work_to_be_found(match)) golden_used_.insert(match.golden);
  }

  std::vector<TypedPair> run() {
    for (const TypeMapping& line : problem_.mappings)
      pair_in_order(problem_.golden_values_of(line), problem_.actual_values_of(line),
                    "the mapping file says so, and the order fits", &line);
    for (const OpKind kind : kKinds) {
      auto goldens = workers(problem_.golden, kind);
      auto actuals = workers(problem_.actual, kind);
      if (kind == OpKind::kActivation) {
        std::erase_if(goldens, [&](uint32_t value) {
          return multiplies(problem_.golden, value, problem_.evidence, &Evidence::golden);
        });
        std::erase_if(actuals, [&](uint32_t value) {
          return multiplies(problem_.actual, value, problem_.evidence, &Evidence::actual);
        });
      }
      pair_in_order(goldens, actuals, "types and order fit");
    }
    pair_classes();
    pair_tables();
    pair_by_flow();
    pair_passed_on();
    pair_trunks();
    pair_by_contents();
    return std::move(pairs_);
  }

 private:
  // A projection whose adapter my side lacks is the whole by its work. kNoValue where golden's value is
  // no part of one with an adapter.
  uint32_t whole_around(uint32_t golden, uint32_t actual) const {
    const SegmentSide& side = problem_.golden;
    const uint32_t outer =
        adapted_around(side.recording, side.segment.operation_at(side.values[golden].position));
    const bool is_work = problem_.actual.values[actual].kind == OpKind::kLinear;
    return is_work && outer != capture::kNoOperation ? output_of(side, outer) : kNoValue;
  }

  // What moves the result of a work does not do it: the work is still to be found. Unless that is
  // known to be somebody's: of a fused projection one part is found, and another one is split off.
  // Gathering rows of a table is all that an embedding does.
  bool is_work_to_be_found(const Match& match) const {
    const Value& golden = problem_.golden.values[match.golden];
    const Value& actual = problem_.actual.values[match.actual];
    const bool looks_up = golden.kind == OpKind::kEmbedding &&
                          is_called(problem_.actual.operation_of(actual), "gather");
    const bool is_moved =
        golden.is_leaf && golden.is_output() && actual.kind != golden.kind && !looks_up;
    return is_moved && !actual_used_.contains(origin_of(match.actual));
  }

  // What is passed on to my value, by however many that compute nothing; kNoValue where nobody says.
  uint32_t origin_of(uint32_t actual) const {
    const SegmentSide& side = problem_.actual;
    if (side.values[actual].kind != OpKind::kMove) return kNoValue;
    uint32_t origin = given_to(side, side.values[actual].position);
    while (origin != kNoValue && !actual_used_.contains(origin) &&
           side.values[origin].kind == OpKind::kMove)
      origin = given_to(side, side.values[origin].position);
    return origin;
  }

  // Splits both lists at the pairs that are settled and pairs what is free in between, where both
  // sides have equally many there:
  //
  //     golden   norm  linear  linear  linear
  //     my side  linear  linear  linear  linear
  //
  // The second linear of golden is settled with the third of my side. Before it golden has one and
  // my side has two, so nothing is paired there. After it both have one: these are a pair.
  //
  // With a line of the mapping file, golden's may be partners of others already, and if the sizes of
  // tensors that a person named do not fit, rows say so.
  void pair_in_order(const std::vector<uint32_t>& goldens, const std::vector<uint32_t>& actuals,
                     const std::string& why, const TypeMapping* line = nullptr) {
    const std::set<uint32_t> none;
    const bool whatever_size =
        line != nullptr && !line->library_tensor.empty() && !line->module_tensor.empty();
    std::vector<std::pair<size_t, size_t>> anchors;  // places in the two lists
    for (const auto& [golden, actual] : settled_) {
      const auto g = std::find(goldens.begin(), goldens.end(), golden);
      const auto a = std::find(actuals.begin(), actuals.end(), actual);
      if (g != goldens.end() && a != actuals.end())
        anchors.emplace_back(g - goldens.begin(), a - actuals.begin());
    }
    std::sort(anchors.begin(), anchors.end());
    anchors.emplace_back(goldens.size(), actuals.size());
    size_t g = 0;
    size_t a = 0;
    for (const auto& [next_golden, next_actual] : anchors) {
      if (next_golden < g || next_actual < a) continue;  // crosses one before it
      pair_stretch(free_ones(goldens, g, next_golden, line != nullptr ? none : golden_used_),
                   free_ones(actuals, a, next_actual, actual_used_), why, whatever_size);
      g = next_golden + 1;
      a = next_actual + 1;
    }
  }

  static std::vector<uint32_t> free_ones(const std::vector<uint32_t>& list, size_t first,
                                         size_t last, const std::set<uint32_t>& used) {
    std::vector<uint32_t> out;
    for (size_t i = first; i < last; ++i)
      if (!used.contains(list[i])) out.push_back(list[i]);
    return out;
  }

  void pair_stretch(const std::vector<uint32_t>& goldens, const std::vector<uint32_t>& actuals,
                    const std::string& why, bool whatever_size) {
    bool fits = goldens.size() == actuals.size();
    for (size_t i = 0; fits && i < goldens.size(); ++i)
      fits = whatever_size || sizes_fit(goldens[i], actuals[i]);
    if (!fits && !whatever_size) pair_by_sizes(goldens, actuals);
    if (!fits) return;
    for (size_t i = 0; i < goldens.size(); ++i) add(goldens[i], actuals[i], why);
  }

  // Where one side has several as one, the sizes may still tell which are single on both:
  //
  //     golden   64  32  32  64  96  96  64
  //     my side  128         64  192     64      the only way to cut both into equal sums
  void pair_by_sizes(const std::vector<uint32_t>& goldens, const std::vector<uint32_t>& actuals) {
    constexpr size_t kMost = 32;      // of either side: in a layer there are ten
    constexpr size_t kMostAsOne = 4;  // queries, keys, values and a gate
    const size_t golden_count = goldens.size();
    const size_t actual_count = actuals.size();
    if (golden_count > kMost || actual_count > kMost) return;
    const auto sum = [&](const std::vector<uint32_t>& list, size_t first, size_t last,
                         std::vector<Evidence::ValueFacts> Evidence::* facts) {
      size_t total = 0;
      for (size_t i = first; i < last; ++i) {
        const size_t columns = columns_of(list[i], facts);
        if (columns == 0) return size_t{0};
        total += columns;
      }
      return total;
    };
    // [g][a]: in how many ways, up to 2, all from these on can be cut; and how the first cut is.
    struct Cut {
      size_t ways = 0;
      size_t golden = 0;
      size_t actual = 0;
    };
    std::vector<std::vector<Cut>> cuts(golden_count + 1, std::vector<Cut>(actual_count + 1));
    cuts[golden_count][actual_count].ways = 1;
    for (size_t g = golden_count; g-- > 0;) {
      for (size_t a = actual_count; a-- > 0;) {
        Cut& cut = cuts[g][a];
        for (size_t n = 1; n <= kMostAsOne && g + n <= golden_count; ++n) {
          for (size_t m = 1; m <= (n == 1 ? kMostAsOne : 1) && a + m <= actual_count; ++m) {
            const Cut& rest = cuts[g + n][a + m];
            const size_t golden_sum = sum(goldens, g, g + n, &Evidence::golden);
            const size_t actual_sum = sum(actuals, a, a + m, &Evidence::actual);
            if (rest.ways == 0 || !widths_fit(golden_sum, actual_sum)) continue;
            const bool is_whole =
                is_whole_on_each_rank(goldens[g], golden_partial_, &Evidence::golden) &&
                is_whole_on_each_rank(actuals[a], actual_partial_, &Evidence::actual);
            if (is_whole && golden_sum != actual_sum) continue;
            cut = {std::min<size_t>(cut.ways + rest.ways, 2), n, m};
          }
        }
      }
    }
    if (cuts[0][0].ways != 1) return;
    for (size_t g = 0, a = 0; g < golden_count;) {
      const Cut cut = cuts[g][a];
      if (cut.golden == 1 && cut.actual == 1)
        add(goldens[g], actuals[a], "types, order and sizes fit");
      g += cut.golden;
      a += cut.actual;
    }
  }

  // Columns of shards add up to those of a whole.
  bool widths_fit(size_t golden, size_t actual) const {
    return golden != 0 && actual != 0 &&
           (golden == actual || golden == actual * problem_.actual.recording.ranks.size() ||
            actual == golden * problem_.golden.recording.ranks.size());
  }

  // Whether a tensor is as wide on one rank as the whole is: all ranks have the same, or parts that
  // are to be added up.
  bool is_whole_on_each_rank(uint32_t value, const std::set<uint32_t>& partial,
                             std::vector<Evidence::ValueFacts> Evidence::* facts) const {
    const bool is_golden = facts == &Evidence::golden;
    const SegmentSide& side = is_golden ? problem_.golden : problem_.actual;
    return side.recording.ranks.size() == 1 || partial.contains(value) ||
           std::any_of(problem_.evidence.begin(), problem_.evidence.end(),
                       [&](const Evidence& evidence) { return (evidence.*facts)[value].is_same; });
  }

  // Modules of the same class, in their order; then what else two modules of the same class put out.
  void pair_classes() {
    if (problem_.golden.recording.traits.types != Types::kModules ||
        problem_.actual.recording.traits.types != Types::kModules)
      return;
    using Values = std::vector<uint32_t>;
    std::map<std::string, std::pair<Values, Values>> classes;  // first outputs, golden's and mine
    for (const bool is_golden : {true, false}) {
      const SegmentSide& side = is_golden ? problem_.golden : problem_.actual;
      for (uint32_t i = 0; i < side.values.size(); ++i)
        if (const std::string& type = side.operation_of(side.values[i]).type;
            side.values[i].is_output() && side.values[i].place == 0 && !type.empty())
          (is_golden ? classes[type].first : classes[type].second).push_back(i);
    }
    for (const auto& [type, both] : classes)
      pair_in_order(both.first, both.second, "classes of modules and order fit");
    for (size_t i = 0; i < settled_.size(); ++i) {
      const Value golden = problem_.golden.values[settled_[i].first];
      const Value actual = problem_.actual.values[settled_[i].second];
      if (!golden.is_output() || !actual.is_output() || golden.index != actual.index ||
          problem_.golden.operation_of(golden).type != problem_.actual.operation_of(actual).type)
        continue;
      for (uint32_t g = 0; g < problem_.golden.values.size(); ++g) {
        const Value& other = problem_.golden.values[g];
        if (other.position != golden.position || !other.is_output()) continue;
        const uint32_t a =
            find_value(problem_.actual, actual.position, Direction::kOutput, other.index);
        if (is_free(g, a)) add(g, a, "another output of modules that correspond");
      }
    }
  }

  // Tables of angles for the first position: cosines are ones and sines zeros, which tells as much as
  // data do where one table of each side holds that number.
  void pair_tables() {
    const auto is_table = [](const Value& value, OpKind kind) {
      return value.is_output() && value.is_leaf && value.kind == kind;
    };
    const auto hold_the_same = [&](uint32_t golden, uint32_t actual) {
      return !problem_.evidence.empty() &&
             std::all_of(problem_.evidence.begin(), problem_.evidence.end(),
                         [&](const Evidence& evidence) {
                           const auto& g = evidence.golden[golden];
                           const auto& a = evidence.actual[actual];
                           return g.constant && g.constant == a.constant && g.columns == a.columns;
                         });
    };
    for (uint32_t g = 0; g < problem_.golden.values.size(); ++g) {
      if (golden_used_.contains(g) || !is_table(problem_.golden.values[g], OpKind::kOther))
        continue;
      std::vector<uint32_t> same;
      size_t tables = 0;
      for (uint32_t a = 0; a < problem_.actual.values.size(); ++a) {
        if (actual_used_.contains(a) || !hold_the_same(g, a)) continue;
        const Value& value = problem_.actual.values[a];
        const bool is_one = is_table(value, OpKind::kMove);
        tables += is_one ? 1 : 0;
        if (is_one || !value.is_leaf) same.push_back(a);
      }
      size_t goldens = 0;
      for (uint32_t other = 0; other < problem_.golden.values.size(); ++other)
        if (is_table(problem_.golden.values[other], OpKind::kOther) && !same.empty() &&
            hold_the_same(other, same[0]))
          ++goldens;
      if (tables != 1 || goldens != 1) continue;
      for (const uint32_t a : same)
        add(g, a, "both hold the same number everywhere, and no other table does");
    }
  }

  // What feeds an operation is what goes into the module that the operation corresponds to. Pairs
  // that are found so are followed further back.
  void pair_by_flow() {
    for (size_t i = 0; i < settled_.size(); ++i) {
      const auto [golden, actual] = settled_[i];
      const Value& g = problem_.golden.values[golden];
      const Value& a = problem_.actual.values[actual];
      const bool is_work =
          a.kind == OpKind::kLinear || a.kind == OpKind::kNorm || a.kind == OpKind::kActivation;
      const bool is_whole =
          g.is_leaf ||
          is_adapted(problem_.golden.recording, problem_.golden.segment.operation_at(g.position));
      if (!is_work || g.kind != a.kind || !g.is_output() || !is_whole || !a.is_leaf) continue;
      const uint32_t input = find_value(problem_.golden, g.position, Direction::kInput, 0);
      const std::string& name = problem_.golden.operation_of(g).name;
      if (a.kind == OpKind::kNorm && adds_first(problem_.actual, a)) {
        // The norm's other output is the sum that it worked on.
        const uint32_t sum = find_value(problem_.actual, a.position, Direction::kOutput, 1);
        const bool is_only =
            find_value(problem_.actual, a.position, Direction::kOutput, 2) == kNoValue;
        const bool is_as_wide = sum != kNoValue && columns_of(sum, &Evidence::actual) ==
                                                       columns_of(actual, &Evidence::actual);
        if (a.index == 0 && is_only && is_as_wide && is_free(input, sum))
          add(input, sum, "it is the sum that what corresponds to " + name + " works on");
        continue;
      }
      const uint32_t producer = producer_of(a);
      if (is_free(input, producer))
        add(input, producer, "it is the input of what corresponds to " + name);
    }
  }

  // What an operation of mine was given, before it was quantised: integers are nothing that golden
  // has.
  uint32_t producer_of(const Value& reader) const {
    const SegmentSide& side = problem_.actual;
    uint32_t producer = given_to(side, reader.position);
    while (producer != kNoValue &&
           (!is_float(producer) || side.values[producer].kind == OpKind::kQuantise))
      producer = given_to(side, side.values[producer].position);
    if (producer == kNoValue || has_topology(side)) return producer;
    const bool is_only_output =
        find_value(side, side.values[producer].position, Direction::kOutput, 1) == kNoValue;
    return is_only_output && may_feed(side, producer, reader.kind) ? producer : kNoValue;
  }

  // What passes on the result of an operation corresponds to what the operation does: an all-reduce
  // that adds up a projection's parts, a transpose, the last rows of a norm.
  void pair_passed_on() {
    const SegmentSide& side = problem_.actual;
    for (uint32_t a = 0; a < side.values.size(); ++a) {
      const Value& value = side.values[a];
      if (!value.is_output() || !value.is_leaf || value.kind != OpKind::kMove ||
          actual_used_.contains(a))
        continue;
      const uint32_t source = origin_of(a);
      const auto found = std::find_if(settled_.begin(), settled_.end(),
                                      [&](const auto& pair) { return pair.second == source; });
      if (found == settled_.end() || !passes_on(a, source, found->first)) continue;
      const uint32_t golden = found->first;
      add(golden, a,
          "it passes on what corresponds to " +
              problem_.golden.operation_of(problem_.golden.values[golden]).name);
    }
  }

  // Whether all of what my value was made of, which corresponds to golden's, is in it.
  bool passes_on(uint32_t actual, uint32_t source, uint32_t golden) const {
    const Operation& operation = problem_.actual.operation_of(problem_.actual.values[actual]);
    const size_t columns = columns_of(actual, &Evidence::actual);
    const bool is_as_wide = columns != 0 && columns == columns_of(golden, &Evidence::golden);
    if (is_called(operation, "allreduce"))
      return is_as_wide && columns == columns_of(source, &Evidence::actual);
    const auto has_form = [&](const auto& is_one) {
      return std::any_of(problem_.evidence.begin(), problem_.evidence.end(),
                         [&](const Evidence& evidence) {
                           const auto& whole = evidence.at(golden, actual).whole;
                           return whole && is_one(*whole);
                         });
    };
    if (is_called(operation, "allgather") || is_called(operation, "transpose"))
      return is_as_wide || has_form([](const Form&) { return true; });
    // Of other rows than the last ones nobody knows which they are.
    return is_called(operation, "gather") &&
           has_form([](const Form& form) { return form.fit == Fit::kLastRows; });
  }

  // Operations that hold others go together where what one holds corresponds to what the other
  // holds, and to nothing outside of it.
  void pair_by_contents() {
    const auto operation = [](const SegmentSide& side, uint32_t value) {
      return side.segment.operation_at(side.values[value].position);
    };
    const auto holds = [](const Recording& recording, uint32_t outer, uint32_t inner) {
      return inner > outer && inner < recording.operations[outer].end;
    };
    const Recording& golden = problem_.golden.recording;
    const Recording& actual = problem_.actual.recording;
    for (uint32_t a = 0; a < problem_.actual.values.size(); ++a) {
      const Value& value = problem_.actual.values[a];
      if (value.is_leaf || !value.is_output() || value.index != 0 || actual_used_.contains(a))
        continue;
      // The innermost golden operation that holds all that corresponds to something in mine.
      uint32_t holder = kNoValue;
      size_t inside = 0;
      for (const auto& [g, found] : found_) {
        if (!holds(actual, operation(problem_.actual, a), operation(problem_.actual, found)))
          continue;
        const uint32_t member = operation(problem_.golden, g);
        if (inside++ == 0) holder = golden.operations[member].parent;
        while (holder != capture::kNoOperation && !holds(golden, holder, member))
          holder = golden.operations[holder].parent;
      }
      if (inside < kFewestInside || holder == kNoValue || holder == capture::kNoOperation) continue;
      const bool is_mutual = std::all_of(found_.begin(), found_.end(), [&](const auto& pair) {
        return !holds(golden, holder, operation(problem_.golden, pair.first)) ||
               holds(actual, operation(problem_.actual, a),
                     operation(problem_.actual, pair.second));
      });
      const uint32_t g = output_of(problem_.golden, holder);
      if (is_mutual && is_free(g, a)) add(g, a, "they hold tensors that correspond");
    }
  }

  // The first output of an operation; kNoValue where it is not in the segment, or has none.
  static uint32_t output_of(const SegmentSide& side, uint32_t operation) {
    for (uint32_t i = 0; i < side.values.size(); ++i)
      if (side.values[i].is_output() && side.values[i].index == 0 &&
          side.segment.operation_at(side.values[i].position) == operation)
        return i;
    return kNoValue;
  }

  void pair_trunks() {
    const uint32_t golden = layer_output(problem_.golden);
    const uint32_t actual = layer_output(problem_.actual);
    if (is_free(golden, actual)) add(golden, actual, "both are what the layer puts out");
  }

  bool is_free(uint32_t golden, uint32_t actual) const {
    return golden != kNoValue && actual != kNoValue && !golden_used_.contains(golden) &&
           !actual_used_.contains(actual) && sizes_fit(golden, actual);
  }

  bool sizes_fit(uint32_t golden, uint32_t actual) const {
    const size_t g = columns_of(golden, &Evidence::golden);
    const size_t a = columns_of(actual, &Evidence::actual);
    return g == 0 || a == 0 || widths_fit(g, a);
  }

  // The most that any evidence saw; 0 where none did.
  size_t columns_of(uint32_t value, std::vector<Evidence::ValueFacts> Evidence::* facts) const {
    size_t columns = 0;
    for (const Evidence& evidence : problem_.evidence)
      columns = std::max(columns, (evidence.*facts)[value].columns);
    return columns;
  }

  bool is_float(uint32_t actual) const {
    return std::all_of(problem_.evidence.begin(), problem_.evidence.end(),
                       [&](const Evidence& evidence) { return evidence.actual[actual].is_float; });
  }

  void add(uint32_t golden, uint32_t actual, const std::string& why) {
    if (!problem_.is_allowed(golden, actual)) return;
    golden_used_.insert(golden);
    actual_used_.insert(actual);
    settled_.emplace_back(golden, actual);
    found_.emplace_back(golden, actual);
    pairs_.push_back({golden, actual, why});
  }

  const MatchProblem& problem_;
  std::set<uint32_t> golden_partial_;
  std::set<uint32_t> actual_partial_;
  std::set<uint32_t> golden_used_;
  std::set<uint32_t> actual_used_;
  std::vector<std::pair<uint32_t, uint32_t>> settled_;  // whole values, golden and mine
  std::vector<std::pair<uint32_t, uint32_t>> found_;    // these, and parts of values
  std::vector<TypedPair> pairs_;
};

}  // namespace

std::vector<TypedPair> pair_by_types(const MatchProblem& problem, std::span<const Match> matches) {
  return TypePairing(problem, matches).run();
}

}  // namespace ait::match
