// Where two tensors disagree about what is finite. No metric shows that: NaN and infinities are left
// out of all of them.
//
//   if (non_finite_differ(row)) {
//     const auto found = find_non_finite_difference(golden, actual);
//     … found.count positions, the first at found.first_index
//   }
#pragma once

#include <cstddef>
#include <string>

#include "compare/row.h"
#include "tensor/tensor.h"

namespace ait::compare {

// Whether a NaN or an infinity stands on one side where the other has something else: worse than
// any distance. Of a side that kept statistics no more is known than whether it holds some.
bool non_finite_differ(const Row& row);

// "golden: 0, my side: 9", or where only statistics are known, which side holds some.
std::string non_finite_counts(const Row& row);

struct NonFiniteDifference {
  size_t count = 0;  // of positions
  size_t first_index = 0;
  double golden = 0;  // what stands there
  double actual = 0;
};

// Of tensors with equally many elements, both complex or none. Complex ones count as twice as many
// reals, as in metrics/compare.h.
NonFiniteDifference find_non_finite_difference(const Tensor& golden, const Tensor& actual);

}  // namespace ait::compare
