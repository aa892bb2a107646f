// The tensors of a recorded run in the order in which they came about, and which operation lies in
// which: what those share who follow data from operation to operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "capture/recording.h"

namespace ait::match {

inline constexpr uint32_t kNoValue = ~uint32_t{0};

class RunSlots {
 public:
  explicit RunSlots(const capture::Recording& recording) : recording_(recording) {}

  const capture::Operation& operation(uint32_t index) const { return recording_.operations[index]; }
  const capture::Slot& slot(uint32_t index) const { return recording_.slots[index]; }
  bool is_input(uint32_t index) const {
    return slot(index).direction == capture::Direction::kInput;
  }
  bool has_slots(uint32_t operation) const {
    return recording_.first_slot[operation] < recording_.first_slot[operation + 1];
  }

  // Calls visit(slot) for the inputs or the outputs of an operation.
  template <typename Visit>
  void each_slot(uint32_t operation, capture::Direction direction, const Visit& visit) const {
    for (uint32_t i = recording_.first_slot[operation]; i < recording_.first_slot[operation + 1];
         ++i)
      if (slot(i).direction == direction && is_value(i)) visit(i);
  }

  // Inputs are there when their operation begins, outputs when it has ended, those of what it
  // consists of first.
  using Time = std::tuple<uint32_t, bool, uint32_t, uint32_t>;
  Time time_of(uint32_t index) const {
    const uint32_t from = slot(index).operation;
    if (is_input(index)) return {from, true, from, index};
    return {operation(from).end, false, ~from, index};
  }

  // All tensors of these operations.
  std::vector<uint32_t> in_time(const std::vector<uint32_t>& operations) const {
    std::vector<uint32_t> out;
    for (const uint32_t each : operations)
      for (const auto direction : {capture::Direction::kInput, capture::Direction::kOutput})
        each_slot(each, direction, [&](uint32_t index) { out.push_back(index); });
    std::sort(out.begin(), out.end(),
              [&](uint32_t a, uint32_t b) { return time_of(a) < time_of(b); });
    return out;
  }

  // The nearest operation around that was recorded: a list of modules is called by nobody.
  uint32_t around(uint32_t index) const {
    uint32_t above = operation(index).parent;
    while (above != capture::kNoOperation && !has_slots(above)) above = operation(above).parent;
    return above;
  }

  // Everything lies in kNoOperation.
  bool lies_in(uint32_t index, uint32_t container) const {
    return container == capture::kNoOperation ||
           (index >= container && index < operation(container).end);
  }

  // Calls visit(operation) for those that a container calls itself and that ended before a time.
  template <typename Visit>
  void each_part(uint32_t container, uint32_t before, const Visit& visit) const {
    const uint32_t end = std::min(before, operation(container).end);
    for (uint32_t i = container + 1; i < end;) {
      if (!has_slots(i)) {
        ++i;
        continue;
      }
      if (operation(i).level == capture::Level::kOperation && operation(i).end <= before) visit(i);
      i = operation(i).end;
    }
  }

 private:
  // What an operation may have changed by the time it has ended is no input, where there is better.
  bool is_value(uint32_t index) const {
    using capture::Direction;
    using capture::Moment;
    const capture::Slot& one = slot(index);
    if (one.direction == Direction::kOutput) return one.moment == Moment::kAfter;
    if (one.moment == Moment::kBefore) return true;
    for (uint32_t i = recording_.first_slot[one.operation]; i < index; ++i)
      if (slot(i).moment == Moment::kBefore && slot(i).direction == Direction::kInput &&
          slot(i).index == one.index)
        return false;
    return true;
  }

  const capture::Recording& recording_;
};

}  // namespace ait::match
