// Loops over ranges, on several threads where the work is worth it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/parallel.h"

namespace atb::kernels {

// Calls body(begin, end) for pieces of [0, count) that hold at least `grain` items each. What body
// writes must depend on the items alone: the cut depends on the number of threads.
template <class Body>
void for_ranges(size_t count, size_t grain, const Body& body) {
  const size_t most = std::max<size_t>(1, count / std::max<size_t>(1, grain));
  // A few pieces for each thread, so that one that is held up does not hold up all.
  const size_t pieces = most == 1 ? 1 : std::min(most, 4 * ait::available_threads());
  if (pieces == 1) return body(size_t{0}, count);
  ait::parallel_for(pieces, 0,
                    [&](size_t i) { body(count * i / pieces, count * (i + 1) / pieces); });
}

// Below this many element operations a thread costs more than it saves.
inline constexpr size_t kWorthAThread = 1 << 15;

// The grain for items of `cost` element operations each.
inline size_t grain_for(size_t cost) {
  return std::max<size_t>(1, kWorthAThread / std::max<size_t>(1, cost));
}

}  // namespace atb::kernels
