// How many roundings a sound implementation of a function of torch may be off, by what kind of
// function it is.
//
//   limit_of("linear", Direction::kForward, DType::kBFloat16);   // 8
//
// A rounding is half the distance of neighbouring values of the result's type: what the last step of
// any computation costs. Where steps before that matter, as in sums of opposite signs, the unit is
// that of the elements around it, or what one rounding of every input does to the result (measure.h).
// A new function that is not `composite` is a word in the list of its kind in limits.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace ait::api_check {

enum class Kind : uint8_t {
  kExact,      // moves, chooses or compares values: nothing is rounded
  kRounded,    // one operation of arithmetic, rounded once
  kFunction,   // of each element for itself: exp, gelu
  kProduct,    // sums and sums of products, in float32 or better
  kComposite,  // all others, and all gradients
};

enum class Direction : uint8_t { kForward, kBackward };

// By its name without in-place endings and the underscores of operators.
Kind kind_of(std::string_view name);

// Whether a result near zero is the sum of greater values.
bool adds_up(std::string_view name, Direction direction);

// Of the worst element.
double limit_of(std::string_view name, Direction direction, DType dtype);

// Of all elements together, the root of their mean square: a fault of all is small for each. One
// rounding, done rightly, is at most 1.
constexpr double typical_limit(double limit) {
  return limit == 0 ? 0 : std::max(1.5, limit <= 16 ? limit / 4 : limit / 8);
}
inline constexpr size_t kFewestForTypical = 16;  // elements, of which that can be said

}  // namespace ait::api_check
