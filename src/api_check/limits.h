// How many roundings a sound implementation of a function of torch may be off, by what kind of
// function it is.
//
//   limit_of("linear", Direction::kForward, DType::kBFloat16);   // 4
//
// A rounding is half the distance of neighbouring values of the result's type: what the last step of
// any computation costs. Where steps before that matter, as in sums of opposite signs, the unit is
// what one rounding of every input does to the result (measure.h). A new function that is not
// `composite` is a word in the list of its kind in limits.cpp.
#pragma once

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

double limit_of(std::string_view name, Direction direction, DType dtype);

}  // namespace ait::api_check
