// Rotary position embedding of one head, which several operations contain.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace ait::golden {

// The element that is turned together with another one: a head is cut into segments of 2 * half
// elements, in which (u, v) becomes (u, v) * cos + (-v, u) * sin.
struct TurnedWith {
  size_t index;
  double sign;
};

constexpr TurnedWith turned_with(size_t index, size_t half) {
  return index % (2 * half) < half ? TurnedWith{index + half, -1} : TurnedWith{index - half, 1};
}

struct Head {
  std::span<const double> values;
  std::span<const double> slack;  // of what was computed before; empty: none
};

// A head of this type, its two halves turned into each other, and what a kernel may be off that
// works in float32, or as some do with float16 in that type.
void turn_head(const Head& head, std::span<const double> cos, std::span<const double> sin,
               DType type, double* values, double* slack);

}  // namespace ait::golden
