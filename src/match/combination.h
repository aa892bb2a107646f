// Whether a tensor was computed of others of its size element by element: what happens between
// modules is mostly a residual addition, a gate or a factor.
//
//   const auto made = find_combination(sum, {&attention, &layer_input, &norm});
//   if (made) …                       // kAdd of {0, 1}: sum = attention + layer_input
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "capture/op_kind.h"
#include "match/content.h"

namespace ait::match {

struct Combination {
  capture::OpKind kind = capture::OpKind::kUnknown;  // kAdd, kMultiply, or kMove for a cast
  std::vector<size_t> parts;                         // which of the candidates
};

// One of them up to a cast or times a number, the sum of two or three, each times a number, or the
// product of two; within what their types can hold. Of several answers the one of fewer parts, then
// of those that stand first. Candidates without data or with constant ones are passed over.
std::optional<Combination> find_combination(const Content& result,
                                            const std::vector<const Content*>& candidates);

// Whether one tensor went into another of its size by addition, whatever else did: unrelated ones do
// not go along with each other.
bool goes_along(const Content& part, const Content& result);

}  // namespace ait::match
