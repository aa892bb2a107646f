#include "match/by_names.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "match/values.h"

namespace ait::match {
namespace {

using capture::kNoOperation;
using capture::Level;
using capture::Operation;
using capture::Recording;

// Two runs of one model share at least so many names.
constexpr double kSameNames = 0.5;

// Layers of each structure beside the first that are looked at for what is computed between their
// modules: a fault in one of them may hide it there.
constexpr size_t kLayersLookedAt = 2;

// What masks hide is set to the smallest number of a type, or to minus infinity.
constexpr float kLargestHalf = 65504;

// Whether a name is that of a module, of one of its calls, or lies in it.
bool lies_in(const std::string& name, const std::string& module) {
  return name.starts_with(module) &&
         (name.size() == module.size() || name[module.size()] == '.' || name[module.size()] == '#');
}

// Calls visit(where the suffix begins) for "root.model.norm" with 0, 5, 11: the longest first.
template <typename Visit>
void each_suffix(const std::string& name, const Visit& visit) {
  for (size_t at = 0;;) {
    if (!visit(at)) return;
    const size_t dot = name.find('.', at);
    if (dot == std::string::npos) return;
    at = dot + 1;
  }
}

size_t count_operations(const Recording& recording) {
  return static_cast<size_t>(
      std::count_if(recording.operations.begin(), recording.operations.end(),
                    [](const Operation& each) { return each.level == Level::kOperation; }));
}

}  // namespace

std::string Renaming::operator()(const std::string& name) const {
  if (actual == golden) return name;
  return lies_in(name, actual) ? golden + name.substr(actual.size()) : std::string();
}

bool are_enough_names(size_t shared, size_t golden_operations, size_t actual_operations) {
  const size_t fewer = std::min(golden_operations, actual_operations);
  return fewer > 0 && static_cast<double>(shared) >= kSameNames * static_cast<double>(fewer);
}

Renaming find_renaming(const Recording& golden, const Recording& actual) {
  constexpr size_t kSeveral = ~size_t{0};
  // Of each end of a name of golden's, the operation that has it.
  std::unordered_map<std::string, size_t> ends;
  std::set<std::string> names;
  for (size_t i = 0; i < golden.operations.size(); ++i) {
    const std::string& name = golden.operations[i].name;
    names.insert(name);
    each_suffix(name, [&](size_t at) {
      const auto [place, is_new] = ends.try_emplace(name.substr(at), i);
      if (!is_new) place->second = kSeveral;
      return true;
    });
  }
  size_t same = 0;
  std::map<std::pair<std::string, std::string>, size_t> votes;  // my module and golden's
  for (const Operation& operation : actual.operations) {
    same += names.contains(operation.name) ? 1 : 0;
    each_suffix(operation.name, [&](size_t at) {
      const auto found = ends.find(operation.name.substr(at));
      if (found == ends.end()) return true;
      if (found->second == kSeveral || at == 0) return false;
      const Operation& other = golden.operations[found->second];
      const size_t other_at = other.name.size() - (operation.name.size() - at);
      if (other_at > 0 && other.type == operation.type)
        ++votes[{operation.name.substr(0, at - 1), other.name.substr(0, other_at - 1)}];
      return false;
    });
  }
  const size_t goldens = count_operations(golden);
  const size_t actuals = count_operations(actual);
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (are_enough_names(same, goldens, actuals) || most == votes.end() ||
      !are_enough_names(most->second, goldens, actuals))
    return {};
  return {most->first.first, most->first.second};
}

std::vector<uint32_t> same_slots(const Recording& golden, const Recording& actual,
                                 const PlaceMap& places) {
  std::vector<uint32_t> out(actual.slots.size(), kNoSlot);
  for (uint32_t slot = 0; slot < actual.slots.size(); ++slot) {
    const uint32_t operation = places.golden_of[actual.slots[slot].operation];
    if (operation == kNoOperation) continue;
    for (uint32_t g = golden.first_slot[operation]; g < golden.first_slot[operation + 1]; ++g)
      if (golden.slots[g].tensor() == actual.slots[slot].tensor()) out[slot] = g;
  }
  return out;
}

std::vector<SegmentPair> segments_by_place(const Program& golden, const Program& actual,
                                           const PlaceMap& places) {
  std::map<uint32_t, const Segment*> goldens;  // by their outermost operation
  for (const Segment& layer : golden.layers) goldens.emplace(layer.operations.front(), &layer);
  std::vector<SegmentPair> out;
  for (const Segment& layer : actual.layers)
    if (const auto found = goldens.find(places.golden_of[layer.operations.front()]);
        found != goldens.end())
      out.emplace_back(found->second, &layer);
  out.emplace_back(&golden.outside, &actual.outside);
  return out;
}

namespace {

class OwnInputs {
 public:
  explicit OwnInputs(const InputSearch& search) : search_(search) {}

  std::vector<uint32_t> run() {
    const Program& program = search_.program;
    std::map<std::string, std::vector<size_t>> structures;
    for (size_t i = 0; i < program.layers.size(); ++i)
      structures[structure_of(search_.recording, program.layers[i])].push_back(i);
    for (const auto& [structure, layers] : structures) {
      // The first layer is given what all layers are, such as tables of positions.
      std::set<size_t> own_of_first;
      std::set<size_t> own_of_others;
      for (size_t i = 0; i < layers.size() && i <= kLayersLookedAt; ++i) {
        const size_t at = layers[i];
        look_at(program.layers[at], {at > 0 ? &program.layers[at - 1] : nullptr, &program.outside},
                i == 0 ? own_of_first : own_of_others);
      }
      for (const size_t layer : layers)
        take(program.layers[layer], layer == layers[0] ? own_of_first : own_of_others);
    }
    std::set<size_t> own;
    if (program.layers.empty())
      look_at(program.outside, {}, own);
    else
      look_at(program.outside, {&program.layers.front(), &program.layers.back()}, own);
    take(program.outside, own);
    std::sort(out_.begin(), out_.end());
    return std::move(out_);
  }

 private:
  struct Known {
    std::vector<Value> values;
    std::vector<Evidence::ValueFacts> facts;
  };

  const Known& known(const Segment& segment) {
    const auto [place, is_new] = known_.try_emplace(&segment);
    if (is_new) {
      place->second.values = values_of(search_.recording, segment);
      place->second.facts = search_.facts(segment, place->second.values);
    }
    return place->second;
  }

  void look_at(const Segment& segment, const std::vector<const Segment*>& others,
               std::set<size_t>& own) {
    std::set<uint64_t> seen;  // what modules put out, and what others are given as well
    const Known& here = known(segment);
    for (size_t i = 0; i < here.values.size(); ++i)
      if (here.values[i].is_output()) seen.insert(here.facts[i].content);
    for (const Segment* other : others)
      if (other != nullptr)
        for (const Evidence::ValueFacts& facts : known(*other).facts) seen.insert(facts.content);
    for (size_t i = 0; i < here.values.size(); ++i)
      if (!here.values[i].is_output() && here.facts[i].content != 0 && here.facts[i].is_float &&
          seen.insert(here.facts[i].content).second)
        own.insert(i);
  }

  void take(const Segment& segment, const std::set<size_t>& own) {
    const std::vector<Value> values = values_of(search_.recording, segment);
    for (const size_t i : own) out_.push_back(slot_of(search_.recording, segment, values[i]));
  }

  const InputSearch& search_;
  std::map<const Segment*, Known> known_;
  std::vector<uint32_t> out_;
};

}  // namespace

bool is_mask(const Sample& sample) {
  std::set<float> values;
  for (const std::vector<float>& row : sample.rows)
    for (const float value : row) {
      if (!(std::abs(value) < kLargestHalf)) return true;
      if (values.size() <= 2) values.insert(value);
    }
  return values.size() <= 2;
}

std::vector<uint32_t> inputs_of_their_own(const InputSearch& search) {
  return OwnInputs(search).run();
}

}  // namespace ait::match
