// Collects what an operation writes to a tensor that stays as it was elsewhere.
//
//   Writes writes(2, task.shape("cache"), row_elements);
//   writes.add(slot * row_elements, key.row(token));
//   outputs.push_back(std::move(writes).finish(task));
//
// The memory for what is added is the caller's to ask for (Task::make_room).
#pragma once

#include <span>

#include "golden/task.h"

namespace ait::golden {

class Writes {
 public:
  Writes(size_t input, Shape shape, size_t stretch_elements);

  // One stretch from element `start` of the whole on. Starts are multiples of each other's
  // distance, so that two stretches are the same or apart. What is computed and not moved has
  // `slack`.
  void add(size_t start, std::span<const double> values, std::span<const double> slack = {});

  // In the order of starts. Which of several different writes to one place stays is up to the
  // device, so such a place is undefined, and a note says how many there are.
  Output finish(Task& task) &&;

 private:
  Output output_;
};

}  // namespace ait::golden
