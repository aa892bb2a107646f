#include "match/flow_by_names.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "match/layers.h"
#include "match/run_slots.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Moment;
using capture::Operation;
using capture::OpKind;
using capture::Recording;

class NameFollower {
 public:
  NameFollower(const Recording& recording, bool are_shared, std::vector<Made>& made)
      : recording_(recording), slots_(recording), are_shared_(are_shared), made_(made) {}

  void run(const std::vector<uint32_t>& operations) {
    std::vector<uint32_t> open;  // that have not ended
    for (const uint32_t each : operations) {
      while (!open.empty() && operation(open.back()).end <= each) {
        end(open.back());
        open.pop_back();
      }
      if (!has_names(operation(each))) continue;
      begin(each);
      open.push_back(each);
    }
    for (; !open.empty(); open.pop_back()) end(open.back());
  }

 private:
  struct Writer {
    uint32_t operation;
    uint32_t value;
  };

  const Operation& operation(uint32_t index) const { return slots_.operation(index); }

  // The slot of a tensor of an operation; kNoValue where nobody recorded it.
  uint32_t slot_of(uint32_t index, Direction direction, size_t number) const {
    uint32_t found = kNoValue;
    for (uint32_t i = recording_.first_slot[index]; i < recording_.first_slot[index + 1]; ++i) {
      const capture::Slot& slot = recording_.slots[i];
      if (slot.direction != direction || slot.index != number) continue;
      const bool is_best = (slot.moment == Moment::kBefore) == (direction == Direction::kInput);
      if (is_best || (found == kNoValue && direction == Direction::kInput)) found = i;
    }
    return found;
  }

  // What a name stands for when an operation begins: what was written last in the same operation or
  // in one around it, else what was written last. kNoValue for what comes from outside.
  uint32_t written(const std::string& name, uint32_t reader) const {
    const auto found = writers_.find(name);
    if (found == writers_.end()) return kNoValue;
    for (size_t i = found->second.size(); i-- > 0;)
      if (slots_.lies_in(reader, operation(found->second[i].operation).parent))
        return found->second[i].value;
    return found->second.back().value;
  }

  void begin(uint32_t index) {
    std::vector<uint32_t>& reads = reads_[index];
    const std::vector<std::string>& names = operation(index).inputs;
    reads.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const uint32_t value = written(names[i], index);
      const uint32_t slot = slot_of(index, Direction::kInput, i);
      reads.push_back(slot == kNoValue ? value : slot);
      if (slot == kNoValue) continue;
      Made& made = made_[slot];
      made.is_known = true;
      made.operation = value == kNoValue ? index : made_[value].operation;
      if (value != kNoValue) set_copy(made, value);
    }
  }

  void end(uint32_t index) {
    const std::vector<std::string>& names = operation(index).outputs;
    std::vector<Writer> written_now;
    written_now.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      uint32_t value = slot_of(index, Direction::kOutput, i);
      if (value == kNoValue) {
        value = static_cast<uint32_t>(made_.size());
        made_.emplace_back();
      }
      Made& made = made_[value];
      made.is_known = true;
      made.operation = index;
      const uint32_t part = written_inside(names[i], index);
      if (part == kNoValue) {
        made.kind = operation(index).kind;
        made.sources = sources_of(index, i);
        made.is_known = are_shared_ || is_enough(made, index);
      } else {
        set_copy(made, part);
      }
      written_now.push_back({index, value});
    }
    for (size_t i = 0; i < names.size(); ++i) writers_[names[i]].push_back(written_now[i]);
  }

  // What an operation that consists of others calls by the name that one of these wrote.
  uint32_t written_inside(const std::string& name, uint32_t index) const {
    const auto found = writers_.find(name);
    if (found == writers_.end() || is_leaf(recording_, index)) return kNoValue;
    const Writer& last = found->second.back();
    return last.operation > index && slots_.lies_in(last.operation, index) ? last.value : kNoValue;
  }

  // Where most of what nobody wrote are weights: what an addition has lost is none.
  bool is_enough(const Made& made, uint32_t index) const {
    const std::vector<uint32_t>& reads = reads_.at(index);
    const bool lacks = std::find(reads.begin(), reads.end(), kNoValue) != reads.end();
    return !made.sources.empty() && (made.kind != OpKind::kAdd || !lacks);
  }

  std::vector<uint32_t> sources_of(uint32_t index, size_t output) const {
    std::vector<uint32_t> out;
    const std::vector<uint32_t>& reads = reads_.at(index);
    const size_t outputs = operation(index).outputs.size();
    // Queries and keys are turned each for itself, and cached each for itself.
    const OpKind kind = operation(index).kind;
    const bool is_each = (kind == OpKind::kRotary || kind == OpKind::kCache) && outputs > 1;
    for (size_t i = 0; i < reads.size(); ++i)
      if (reads[i] != kNoValue && (!is_each || i == output || i >= outputs))
        out.push_back(reads[i]);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  static void set_copy(Made& made, uint32_t of) {
    made.is_copy = true;
    made.kind = OpKind::kMove;
    made.sources = {of};
  }

  const Recording& recording_;
  const RunSlots slots_;
  bool are_shared_;
  std::vector<Made>& made_;
  std::unordered_map<std::string, std::vector<Writer>> writers_;  // of each name, in time
  std::unordered_map<uint32_t, std::vector<uint32_t>> reads_;     // of each operation
};

}  // namespace

bool has_names(const Operation& operation) {
  return !operation.inputs.empty() || !operation.outputs.empty();
}

bool are_names_shared(const Recording& recording, const std::vector<uint32_t>& tops) {
  if (tops.size() < 2) return true;
  std::unordered_set<std::string_view> written;
  for (const uint32_t top : tops)
    written.insert(recording.operations[top].outputs.begin(),
                   recording.operations[top].outputs.end());
  return std::any_of(tops.begin(), tops.end(), [&](uint32_t top) {
    const Operation& operation = recording.operations[top];
    return std::any_of(
        operation.inputs.begin(), operation.inputs.end(), [&](const std::string& name) {
          return written.contains(name) &&
                 std::find(operation.outputs.begin(), operation.outputs.end(), name) ==
                     operation.outputs.end();
        });
  });
}

void follow_names(const Recording& recording, const std::vector<uint32_t>& operations,
                  bool are_shared, std::vector<Made>& made) {
  NameFollower(recording, are_shared, made).run(operations);
}

}  // namespace ait::match
