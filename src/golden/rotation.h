// Rotary position embedding of one head, which several operations contain.
#pragma once

#include <cstddef>

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

}  // namespace ait::golden
