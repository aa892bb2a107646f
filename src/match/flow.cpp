#include "match/flow.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/parallel.h"
#include "match/between_parts.h"
#include "match/content.h"
#include "match/flow_by_names.h"
#include "match/layers.h"
#include "match/run_slots.h"
#include "match/sample.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::Operation;
using capture::OpKind;
using capture::Recording;
using capture::Slot;

// Layers of a structure that are looked at: a fault in one of them may hide what is computed there.
constexpr size_t kLayersLookedAt = 3;

// Fewer numbers than these are parameters rather than data.
constexpr size_t kFewestElements = 8;

// Whether a tensor says what others are to be hidden: two numbers do, and infinity may be one.
bool is_mask(const Content& content) {
  std::set<float> values;
  for (const float value : content.sample) {
    if (std::isnan(value)) return false;
    values.insert(value);
    if (values.size() > 2) return false;
  }
  return true;
}

class FlowFinder {
 public:
  FlowFinder(const RunSide& side, size_t program, const std::vector<const SideStep*>& steps)
      : side_(side),
        recording_(side.recording),
        slots_(side.recording),
        program_(side.programs[program]),
        steps_(steps),
        step_(steps.front()),
        made_(recording_.slots.size()),
        contents_(recording_.slots.size()),
        is_open_(recording_.slots.size()) {}

  Flow run() {
    const std::vector<uint32_t> operations = all_operations();
    const bool are_shared = are_names_shared(recording_, program_.tops);
    // What was recorded of inputs leads farther than the names of a mere layer.
    use_names_ = are_shared || !has_input_slots(operations);
    if (use_names_) follow_names(recording_, operations, are_shared, made_);
    choose_layers();
    choose_step();
    read();
    for (const uint32_t each : slots_.in_time(looked_at_)) identify(each);
    copy_to_other_layers();
    BetweenParts between(slots_, contents_, is_open_, made_,
                         [&](uint32_t each) { return load(each); });
    between.list_readers(operations);
    for (const uint32_t each : slots_.in_time(looked_at_)) between.compose(each);
    copy_to_other_layers();
    follow_kernels();
    return {std::move(made_)};
  }

 private:
  const Operation& operation(uint32_t index) const { return slots_.operation(index); }
  const Slot& slot(uint32_t index) const { return slots_.slot(index); }
  bool is_input(uint32_t index) const { return slots_.is_input(index); }

  // Whether names have told already what an operation reads.
  bool is_named(uint32_t index) const { return use_names_ && has_names(operation(index)); }

  bool has_input_slots(const std::vector<uint32_t>& operations) const {
    return std::any_of(operations.begin(), operations.end(), [&](uint32_t each) {
      bool out = false;
      slots_.each_slot(each, Direction::kInput, [&](uint32_t) { out = true; });
      return out;
    });
  }

  void choose_layers() {
    const std::vector<Segment>& layers = program_.layers;
    std::map<std::string, std::vector<size_t>> structures;
    for (size_t i = 0; i < layers.size(); ++i)
      structures[structure_of(recording_, layers[i])].push_back(i);
    std::set<uint32_t> chosen(program_.outside.operations.begin(),
                              program_.outside.operations.end());
    const auto add_result = [&](size_t layer) {
      const uint32_t root = layers[layer].operations.front();
      bool has_output = false;
      slots_.each_slot(root, Direction::kOutput, [&](uint32_t) { has_output = true; });
      if (has_output)
        chosen.insert(root);
      else
        chosen.insert(layers[layer].operations.begin(), layers[layer].operations.end());
    };
    // Layers of the same structure may be given different things: tables for near and far positions.
    for (size_t i = 0; i < layers.size() && recording_.traits.inputs_are_values; ++i)
      chosen.insert(layers[i].operations.front());
    for (const auto& [structure, members] : structures) {
      alike_.push_back(members);
      for (size_t i = 0; i < members.size() && i < kLayersLookedAt; ++i) {
        chosen.insert(layers[members[i]].operations.begin(), layers[members[i]].operations.end());
        if (members[i] > 0) add_result(members[i] - 1);
      }
    }
    if (!layers.empty()) add_result(layers.size() - 1);
    std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(looked_at_),
                 [&](uint32_t each) { return !is_named(each); });
  }

  // Attention to a single token does nothing but pass its value on: a prompt tells more than a new
  // word does, and a second word more than a prompt of one.
  void choose_step() {
    if (steps_.size() > 1 && !looked_at_.empty() && size_in(*steps_[1]) >= size_in(*steps_[0]))
      step_ = steps_[1];
  }

  size_t size_in(const SideStep& step) const {
    constexpr size_t kEnough = 8;
    size_t seen = 0;
    size_t elements = 0;
    for (const uint32_t each : looked_at_)
      slots_.each_slot(each, Direction::kOutput, [&](uint32_t index) {
        const auto round = seen < kEnough ? round_of(side_, step, each) : std::nullopt;
        if (!round || !recording_.has(0, *round, index)) return;
        if (const auto shape = read_shape(recording_.record(0, *round, index))) {
          ++seen;
          elements += count_elements(*shape).value_or(0);
        }
      });
    return elements;
  }

  void read() {
    const std::vector<uint32_t> slots = slots_.in_time(looked_at_);
    parallel_for(slots.size(), 0, [&](size_t i) {
      Content& content = contents_[slots[i]];
      if (const auto record = record_of(slots[i])) content = read_content(*record);
      // Between the operations of a compiled graph nothing is computed, and there are many.
      if (!recording_.graphs.empty()) content.sample = {};
    });
    has_inputs_ = std::any_of(slots.begin(), slots.end(), [&](uint32_t each) {
      return is_input(each) && contents_[each].is_read();
    });
  }

  // On the first rank that has it.
  std::optional<capture::TensorRecord> record_of(uint32_t index) const {
    const auto round = round_of(side_, *step_, slot(index).operation);
    for (size_t rank = 0; round && rank < recording_.ranks.size(); ++rank)
      if (recording_.has(rank, *round, index)) return recording_.record(rank, *round, index);
    return std::nullopt;
  }

  std::optional<Tensor> load(uint32_t index) const {
    const auto record = record_of(index);
    return record ? load_tensor(*record) : std::nullopt;
  }

  // Of the tensors so far that hold the same: the last one in the same module or in one around it,
  // else the last one. That another module is given it, too, says least.
  uint32_t same_before(uint32_t index) const {
    const auto found = by_content_.find(contents_[index].hash);
    if (found == by_content_.end()) return kNoValue;
    const uint32_t reader = slot(index).operation;
    uint32_t given_to_other = kNoValue;
    for (size_t i = found->second.size(); i-- > 0;) {
      const uint32_t other = found->second[i];
      const uint32_t writer = slot(other).operation;
      const bool is_near = is_input(index) ? slots_.lies_in(reader, slots_.around(writer))
                                           : slots_.lies_in(writer, reader);
      const bool is_itself = !is_input(index) && !is_input(other) && writer == reader;
      // A number that goes into two operations is no tensor that one has from the other.
      const bool is_number = is_input(other) && contents_[index].elements < kFewestElements;
      if (!is_near || is_itself || is_number) continue;
      if (!is_input(other) || slots_.lies_in(reader, writer)) return other;
      if (given_to_other == kNoValue) given_to_other = other;
    }
    if (given_to_other != kNoValue) return given_to_other;
    // Zeros are found anywhere.
    return contents_[index].is_constant ? kNoValue : found->second.back();
  }

  void identify(uint32_t index) {
    const Content& content = contents_[index];
    if (!content.is_read()) {
      if (!is_input(index)) identify_unread(index);
      return;
    }
    if (is_input(index))
      identify_input(index);
    else
      identify_output(index);
    by_content_[content.hash].push_back(index);
  }

  void identify_input(uint32_t index) {
    Made& made = made_[index];
    const uint32_t from = slot(index).operation;
    const uint32_t same = same_before(index);
    made.is_known = true;
    made.operation = slots_.around(from) == kNoOperation ? from : slots_.around(from);
    if (same != kNoValue) {
      set_copy(made, same);
      if (!recording_.traits.inputs_are_values)
        made.operation = made_[root_of(slots_, made_, same)].operation;
    } else {
      is_open_[index] = recording_.traits.inputs_are_values && contents_[index].is_float() &&
                        slots_.around(from) != kNoOperation && !is_mask(contents_[index]);
    }
  }

  void identify_output(uint32_t index) {
    Made& made = made_[index];
    made.operation = slot(index).operation;
    if (is_leaf(recording_, made.operation)) return identify_result(index);
    const uint32_t same = same_before(index);
    if (same != kNoValue) {
      made.is_known = true;
      set_copy(made, same);
    } else {
      is_open_[index] = has_inputs_;
    }
  }

  // Of what an operation that consists of no others puts out.
  void identify_result(uint32_t index) {
    Made& made = made_[index];
    const uint32_t from = slot(index).operation;
    made.kind = operation(from).kind;
    // Queries and keys are turned each for itself, and cached each for itself.
    uint32_t outputs = 0;
    slots_.each_slot(from, Direction::kOutput, [&](uint32_t) { ++outputs; });
    const bool is_each =
        (made.kind == OpKind::kRotary || made.kind == OpKind::kCache) && outputs > 1;
    bool has_input = false;
    slots_.each_slot(from, Direction::kInput, [&](uint32_t input) {
      has_input = true;
      const uint32_t number = slot(input).index;
      if (is_each && number < outputs && number != slot(index).index) return;
      made.is_known |= made_[input].is_known;
      made.sources.push_back(input);
    });
    if (!has_input) made.is_known = has_inputs_;
    if (!made.is_known) made.sources.clear();
    if (made.is_known && contents_[index].is_read() && made.sources.size() == 1 &&
        contents_[made.sources[0]].hash == contents_[index].hash)
      made.is_copy = true;
  }

  void identify_unread(uint32_t index) {
    made_[index].operation = slot(index).operation;
    if (is_leaf(recording_, slot(index).operation)) identify_result(index);
  }

  static void set_copy(Made& made, uint32_t of) {
    made.is_copy = true;
    made.kind = OpKind::kMove;
    made.sources = {of};
  }

  std::vector<uint32_t> all_operations() const {
    std::vector<uint32_t> out = program_.outside.operations;
    for (const Segment& layer : program_.layers)
      out.insert(out.end(), layer.operations.begin(), layer.operations.end());
    std::sort(out.begin(), out.end());
    return out;
  }

  // The slot of another layer of the same structure that stands where this one does.
  uint32_t slot_at(uint32_t index, const Segment& from, const Segment& to) const {
    const uint32_t first = slot(index).operation;
    const auto place = static_cast<size_t>(
        std::lower_bound(from.operations.begin(), from.operations.end(), first) -
        from.operations.begin());
    const uint32_t other = to.operations[place];
    const uint32_t number = index - recording_.first_slot[first];
    const bool is_same_number = recording_.first_slot[other + 1] - recording_.first_slot[other] ==
                                recording_.first_slot[first + 1] - recording_.first_slot[first];
    if (is_same_number) return recording_.first_slot[other] + number;
    for (uint32_t i = recording_.first_slot[other]; i < recording_.first_slot[other + 1]; ++i)
      if (slot(i).direction == slot(index).direction && slot(i).index == slot(index).index &&
          slot(i).moment == slot(index).moment)
        return i;
    return kNoValue;
  }

  bool is_in(uint32_t index, size_t layer) const {
    return index < recording_.slots.size() &&
           slots_.lies_in(slot(index).operation, program_.layers[layer].operations.front());
  }

  // What a tensor of one layer is for another one: its own, the layer's before it, or the same.
  uint32_t source_at(uint32_t source, size_t from, size_t to) const {
    const std::vector<Segment>& layers = program_.layers;
    if (is_in(source, from)) return slot_at(source, layers[from], layers[to]);
    if (from == 0 || to == 0 || !is_in(source, from - 1)) return source;
    const bool is_alike = layers[from - 1].operations.size() == layers[to - 1].operations.size() ||
                          slot(source).operation == layers[from - 1].operations.front();
    return is_alike ? slot_at(source, layers[from - 1], layers[to - 1]) : kNoValue;
  }

  Made made_at(const Made& made, size_t from, size_t to) const {
    Made out = made;
    const std::vector<Segment>& layers = program_.layers;
    if (made.operation != kNoOperation &&
        slots_.lies_in(made.operation, layers[from].operations.front()))
      out.operation = layers[to].operations[static_cast<size_t>(
          std::lower_bound(layers[from].operations.begin(), layers[from].operations.end(),
                           made.operation) -
          layers[from].operations.begin())];
    for (uint32_t& source : out.sources) source = source_at(source, from, to);
    std::erase(out.sources, kNoValue);
    if (out.sources.empty()) out.is_copy = false;
    return out;
  }

  // What was found for a tensor in one of the layers that were looked at.
  struct Finding {
    size_t layer;
    uint32_t slot;
    Made made;  // as it would be in another layer
    bool is_open;

    bool agrees(const Finding& other) const {
      return made == other.made && is_open == other.is_open;
    }
    // Something of which it is known what it was put together of.
    bool is_explained() const { return is_open && made.kind != OpKind::kUnknown; }
    bool says_nothing() const { return is_open ? !is_explained() : made.sources.empty(); }
  };

  // A fault in one of the layers may leave out an addition there, or add what nothing explains: what
  // two of them show holds, unless it is nothing. Data that are all the same, NaN say, show least.
  Finding choose(std::vector<Finding> findings) const {
    const auto is_plain = [&](const Finding& each) { return contents_[each.slot].is_constant; };
    const auto is_overruled = [&](const Finding& each) { return overruled_.contains(each.slot); };
    if (!std::all_of(findings.begin(), findings.end(), is_plain)) std::erase_if(findings, is_plain);
    if (!std::all_of(findings.begin(), findings.end(), is_overruled))
      std::erase_if(findings, is_overruled);
    for (size_t i = 0; i < findings.size(); ++i)
      for (size_t j = i + 1; j < findings.size(); ++j)
        if (findings[i].agrees(findings[j]) && !findings[i].says_nothing()) return findings[i];
    const auto best = [&](const auto& is_good) {
      return std::find_if(findings.begin(), findings.end(), is_good);
    };
    auto found = best([](const Finding& each) { return each.is_explained(); });
    if (found == findings.end()) found = best([](const Finding& each) { return each.is_open; });
    return found == findings.end() ? findings.front() : *found;
  }

  bool lies_within(const Finding& finding) const {
    const std::vector<uint32_t>& sources = made_[finding.slot].sources;
    return std::all_of(sources.begin(), sources.end(),
                       [&](uint32_t each) { return is_in(each, finding.layer); });
  }

  // What was found in the layers of a structure that were looked at holds for all of them. What
  // comes from before the first layer is something else for the others.
  void copy_to_other_layers() {
    const std::vector<Segment>& layers = program_.layers;
    for (const std::vector<size_t>& members : alike_) {
      if (members.size() < 2) continue;
      const size_t second = members[1];
      std::vector<size_t> looked_at = {second, members[0]};
      if (members.size() > 2) looked_at.insert(looked_at.begin() + 1, members[2]);
      for (const uint32_t each : layers[second].operations) {
        if (is_named(each)) continue;
        for (uint32_t index = recording_.first_slot[each]; index < recording_.first_slot[each + 1];
             ++index) {
          std::vector<Finding> findings;
          for (const size_t layer : looked_at) {
            const uint32_t other = slot_at(index, layers[second], layers[layer]);
            if (other == kNoValue) continue;
            findings.push_back(
                {layer, other, made_at(made_[other], layer, second), is_open_[other]});
            if (layer == members[0] && !lies_within(findings.back())) findings.pop_back();
          }
          const Finding best = choose(findings);
          for (const Finding& other : findings)
            if (!other.agrees(best)) overruled_.insert(other.slot);
          for (const size_t member : members)
            if (member != members[0] || lies_within(best)) copy_to(best.slot, best.layer, member);
        }
      }
    }
  }

  void copy_to(uint32_t index, size_t from, size_t to) {
    const uint32_t target = slot_at(index, program_.layers[from], program_.layers[to]);
    if (target == kNoValue || from == to) return;
    const bool is_given = is_input(target) && contents_[target].is_read() &&
                          slot(target).operation == program_.layers[to].operations.front();
    if (is_given) return;  // its own data have told it
    made_[target] = made_at(made_[index], from, to);
    is_open_[target] = is_open_[index];
  }

  // What a kernel puts out comes from where the results of its operation do.
  void follow_kernels() {
    for (const uint32_t each : all_operations()) {
      if (operation(each).end == each + 1 || !is_leaf(recording_, each)) continue;
      std::optional<Made> made;
      slots_.each_slot(each, Direction::kOutput, [&](uint32_t output) {
        if (!made && made_[output].is_known) made = made_[output];
      });
      if (!made) continue;
      made->is_copy = false;
      for (uint32_t kernel = each + 1; kernel < operation(each).end; ++kernel)
        slots_.each_slot(kernel, Direction::kOutput, [&](uint32_t output) {
          made_[output] = *made;
          made_[output].operation = kernel;
        });
    }
  }

  const RunSide& side_;
  const Recording& recording_;
  const RunSlots slots_;
  const Program& program_;
  const std::vector<const SideStep*>& steps_;
  const SideStep* step_;  // that is looked at
  std::vector<Made> made_;
  std::vector<Content> contents_;
  std::vector<bool> is_open_;     // computed between operations: of what is yet to be found
  std::set<uint32_t> overruled_;  // slots of which other layers say something else
  std::vector<uint32_t> looked_at_;
  std::vector<std::vector<size_t>> alike_;  // layers of the same structure
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_content_;
  bool use_names_ = false;
  bool has_inputs_ = false;
};

}  // namespace

Flow find_flow(const RunSide& side, size_t program, const std::vector<const SideStep*>& steps) {
  return FlowFinder(side, program, steps).run();
}

}  // namespace ait::match
