// What a module or a graph computes itself, between the operations that it calls: of which tensors.
//
// What is put together of others element by element (combination.h) or is a part of one
// (selection.h) comes from these. Of anything else, as attention is, nothing is known but that it
// comes from what was there and nobody had read yet, or what can be seen in it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "match/content.h"
#include "match/flow.h"
#include "match/run_slots.h"

namespace ait::match {

// The output, or the input that no operation put out, that an input's tensor is.
uint32_t root_of(const RunSlots& slots, const std::vector<Made>& made, uint32_t index);

class BetweenParts {
 public:
  // `is_open` says of each slot whether it was computed so. What is found goes into `made`, which
  // holds what all others are.
  BetweenParts(const RunSlots& slots, const std::vector<Content>& contents,
               const std::vector<bool>& is_open, std::vector<Made>& made,
               std::function<std::optional<Tensor>(uint32_t slot)> load)
      : slots_(slots),
        contents_(contents),
        is_open_(is_open),
        made_(made),
        load_(std::move(load)) {}

  // Learns what these operations, all of the run, have read.
  void list_readers(const std::vector<uint32_t>& operations);

  // Slots have to come in time. Those that are not open are left as they are.
  void compose(uint32_t index);

 private:
  struct Between;

  Between between_at(uint32_t index) const;
  template <typename Fits>
  std::vector<uint32_t> candidates(const Between& at, const Fits& fits) const;
  bool combine(uint32_t index, const Between& at);
  bool select(uint32_t index, const Between& at);
  void add_choice(uint32_t index, const Between& at);
  std::vector<uint32_t> unread(uint32_t index, const Between& at) const;
  bool is_read_in(uint32_t value, uint32_t container, uint32_t end) const;
  uint32_t root(uint32_t index) const { return root_of(slots_, made_, index); }

  const RunSlots& slots_;
  const std::vector<Content>& contents_;
  const std::vector<bool>& is_open_;
  std::vector<Made>& made_;
  std::function<std::optional<Tensor>(uint32_t slot)> load_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // of each tensor, operations
};

}  // namespace ait::match
