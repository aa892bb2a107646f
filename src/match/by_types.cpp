#include "match/by_types.h"

#include <algorithm>
#include <map>
#include <set>

namespace ait::match {
namespace {

using capture::Direction;
using capture::Operation;
using capture::OpKind;
using Types = capture::Traits::Types;

constexpr uint32_t kNone = ~uint32_t{0};

const Operation& operation_of(const MatchSide& side, const Value& value) {
  return side.recording.operations[side.segment.operation_at(value.position)];
}

std::string tensor_name(const MatchSide& side, const Value& value) {
  return side.recording.slots[slot_of(side.recording, side.segment, value)].tensor();
}

class TypePairing {
 public:
  TypePairing(const MatchSide& golden, const MatchSide& actual, std::span<const Match> matches,
              const TypeHints& hints, std::span<const TypeMapping> mappings)
      : golden_(golden), actual_(actual), hints_(hints), mappings_(mappings) {
    for (const Match& match : matches) {
      golden_used_.insert(match.golden);
      actual_used_.insert(match.actual);
      if (match.form.golden.taken == 0 && match.form.actual.taken == 0 && !match.golden_too)
        settled_.emplace_back(match.golden, match.actual);
    }
  }

  std::vector<TypedPair> run() {
    for (const TypeMapping& mapping : mappings_) by_mapping(mapping);
    for (const OpKind kind :
         {OpKind::kEmbedding, OpKind::kNorm, OpKind::kLinear, OpKind::kActivation,
          OpKind::kAttention, OpKind::kAdd, OpKind::kMultiply, OpKind::kRotary})
      in_order(select(golden_, kind), select(actual_, kind), "types and order fit");
    by_flow();
    by_trunk();
    return std::move(pairs_);
  }

 private:
  // First outputs of what does this kind of work. Of torch, containers do not work.
  static std::vector<uint32_t> select(const MatchSide& side, OpKind kind) {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < side.values.size(); ++i) {
      const Value& value = side.values[i];
      if (value.kind == kind && value.is_leaf && value.direction == Direction::kOutput &&
          value.index == 0)
        out.push_back(i);
    }
    return out;
  }

  void by_mapping(const TypeMapping& mapping) {
    const auto pick = [&](const MatchSide& side, const std::string& type,
                          const std::string& tensor) {
      std::vector<uint32_t> out;
      for (uint32_t i = 0; i < side.values.size(); ++i) {
        const Value& value = side.values[i];
        if (operation_of(side, value).type.find(type) == std::string::npos) continue;
        if (tensor.empty() ? value.direction == Direction::kOutput && value.index == 0
                           : tensor_name(side, value) == tensor)
          out.push_back(i);
      }
      return out;
    };
    const auto of = [&](const MatchSide& side) {
      return side.recording.traits.types == Types::kModules
                 ? pick(side, mapping.module, mapping.module_tensor)
                 : pick(side, mapping.library, mapping.library_tensor);
    };
    in_order(of(golden_), of(actual_), "the mapping file says so, and the order fits");
  }

  // Columns of shards add up to those of a whole.
  bool sizes_fit(uint32_t golden, uint32_t actual) const {
    const size_t g = hints_.golden_columns[golden];
    const size_t a = hints_.actual_columns[actual];
    return g == 0 || a == 0 || g == a || g == a * actual_.recording.ranks.size() ||
           a == g * golden_.recording.ranks.size();
  }

  // Splits both at what is settled and pairs stretches of equal length.
  void in_order(const std::vector<uint32_t>& goldens, const std::vector<uint32_t>& actuals,
                const std::string& why) {
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
      stretch(free_ones(goldens, g, next_golden, golden_used_),
              free_ones(actuals, a, next_actual, actual_used_), why);
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

  void stretch(const std::vector<uint32_t>& goldens, const std::vector<uint32_t>& actuals,
               const std::string& why) {
    if (goldens.size() != actuals.size()) return;
    for (size_t i = 0; i < goldens.size(); ++i)
      if (!sizes_fit(goldens[i], actuals[i])) return;
    for (size_t i = 0; i < goldens.size(); ++i) add(goldens[i], actuals[i], why);
  }

  void add(uint32_t golden, uint32_t actual, const std::string& why) {
    if (!may_correspond(golden_, golden_.values[golden], actual_, actual_.values[actual],
                        mappings_))
      return;
    golden_used_.insert(golden);
    actual_used_.insert(actual);
    settled_.emplace_back(golden, actual);
    pairs_.push_back({golden, actual, why});
  }

  // What feeds an operation is what goes into the module that it corresponds to.
  void by_flow() {
    for (size_t i = 0; i < settled_.size(); ++i) {
      const auto [golden, actual] = settled_[i];
      const Value& g = golden_.values[golden];
      const Value& a = actual_.values[actual];
      const bool working =
          a.kind == OpKind::kLinear || a.kind == OpKind::kNorm || a.kind == OpKind::kActivation;
      if (g.kind != a.kind || !working || g.direction != Direction::kOutput || !g.is_leaf ||
          !a.is_leaf)
        continue;
      const uint32_t input = input_of(golden_, g.position);
      const uint32_t producer = producer_of(actual_, a.position);
      if (input == kNone || producer == kNone || actual_used_.contains(producer) ||
          golden_used_.contains(input) || !sizes_fit(input, producer) ||
          !hints_.actual_is_float[producer] || actual_.values[producer].kind == OpKind::kQuantise)
        continue;
      add(input, producer, "it feeds what " + operation_of(golden_, g).name + " corresponds to");
    }
  }

  // The operation that holds most of the others, a layer or a model of one layer, with its like.
  void by_trunk() {
    const uint32_t golden = trunk_output(golden_);
    const uint32_t actual = trunk_output(actual_);
    if (golden != kNone && actual != kNone && !golden_used_.contains(golden) &&
        !actual_used_.contains(actual) && sizes_fit(golden, actual))
      add(golden, actual, "both hold most of what is around them");
  }

  // Of the innermost operation that holds at least half of the segment.
  static uint32_t trunk_output(const MatchSide& side) {
    uint32_t trunk = kNone;
    for (uint32_t i = 0; i < side.segment.operations.size(); ++i) {
      const uint32_t operation = side.segment.operations[i];
      const size_t inside = static_cast<size_t>(std::count_if(
          side.segment.operations.begin(), side.segment.operations.end(), [&](uint32_t other) {
            return other >= operation && other < side.recording.operations[operation].end;
          }));
      if (inside > 1 && 2 * inside >= side.segment.operations.size()) trunk = i;
    }
    for (uint32_t i = 0; i < side.values.size(); ++i)
      if (side.values[i].position == trunk && side.values[i].direction == Direction::kOutput &&
          side.values[i].index == 0)
        return i;
    return kNone;
  }

  static uint32_t input_of(const MatchSide& side, uint32_t position) {
    for (uint32_t i = 0; i < side.values.size(); ++i)
      if (side.values[i].position == position && side.values[i].direction == Direction::kInput &&
          side.values[i].index == 0)
        return i;
    return kNone;
  }

  // By the names of tensors: the last leaf before it that writes what it reads first.
  static uint32_t producer_of(const MatchSide& side, uint32_t position) {
    const Operation& reader = side.recording.operations[side.segment.operation_at(position)];
    if (reader.inputs.empty()) return kNone;
    for (uint32_t before = position; before-- > 0;) {
      const Operation& writer = side.recording.operations[side.segment.operation_at(before)];
      const auto name = std::find(writer.outputs.begin(), writer.outputs.end(), reader.inputs[0]);
      if (name == writer.outputs.end()) continue;
      const auto index = static_cast<uint32_t>(name - writer.outputs.begin());
      for (uint32_t i = 0; i < side.values.size(); ++i)
        if (side.values[i].position == before && side.values[i].is_leaf &&
            side.values[i].direction == Direction::kOutput && side.values[i].index == index)
          return i;
    }
    return kNone;
  }

  const MatchSide& golden_;
  const MatchSide& actual_;
  const TypeHints& hints_;
  std::span<const TypeMapping> mappings_;
  std::set<uint32_t> golden_used_;
  std::set<uint32_t> actual_used_;
  std::vector<std::pair<uint32_t, uint32_t>> settled_;
  std::vector<TypedPair> pairs_;
};

}  // namespace

std::vector<TypedPair> pair_by_types(const MatchSide& golden, const MatchSide& actual,
                                     std::span<const Match> matches, const TypeHints& hints,
                                     std::span<const TypeMapping> mappings) {
  return TypePairing(golden, actual, matches, hints, mappings).run();
}

bool may_correspond(const MatchSide& golden, const Value& golden_value, const MatchSide& actual,
                    const Value& actual_value, std::span<const TypeMapping> mappings) {
  if (mappings.empty() || golden.recording.traits.types == actual.recording.traits.types)
    return true;
  const bool golden_modules = golden.recording.traits.types == Types::kModules;
  const Value& module_value = golden_modules ? golden_value : actual_value;
  const Value& library_value = golden_modules ? actual_value : golden_value;
  if (module_value.direction == Direction::kInput) return true;
  const std::string& module = operation_of(golden_modules ? golden : actual, module_value).type;
  const std::string& library = operation_of(golden_modules ? actual : golden, library_value).type;
  bool mentioned = false;
  for (const TypeMapping& mapping : mappings) {
    if (library.find(mapping.library) == std::string::npos) continue;
    mentioned = true;
    if (module.find(mapping.module) != std::string::npos) return true;
  }
  return !mentioned;
}

}  // namespace ait::match
