// Everything that is measured of one output of a function: what the device gave against what the
// benchmark gave in a higher precision.
//
//   const Difference d = measure(bench.view(), device.view(), {});
//   d.share_below(1);     // of the elements whose relative error is below 0.001
//   d.roundings;          // how far the worst element is off, in roundings of the device's type
//
// The formulas are those of docs/api-check.md. Sums do not depend on the number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "tensor/tensor.h"

namespace ait::api_check {

// Of relative errors: those that the old rules count.
inline constexpr std::array<double, 3> kThresholds = {0.01, 0.001, 0.0001};

struct MeasureOptions {
  // Hold the device's result against the benchmark as it is, not as the device's type can say it.
  bool raw_bench = false;
  // An element's unit is also a rounding of the elements around it, and one in float32 of what the
  // elements are in the mean: what is left of a sum may be far smaller than what was added up.
  bool neighbours = false;
  // The benchmark's result for inputs that are off by one rounding each. Where it is given, an
  // element's unit is also what that does to the elements around it.
  const TensorView* moved = nullptr;
};

struct Difference {
  size_t elements = 0;
  size_t mismatched = 0;         // NaN or infinite on one side, or infinities of opposite signs
  std::optional<double> cosine;  // nothing where no element is finite, or a side is all zero
  bool bench_zero = false;
  bool device_zero = false;
  double max_absolute = 0;
  double max_relative = 0;
  std::array<size_t, 3> below{};  // elements whose relative error is below kThresholds

  double roundings = 0;  // how far the worst element is off
  double typical = 0;    // the root of the mean square over all elements
  size_t worst = 0;      // the element that is off by `roundings`
  double worst_bench = 0;
  double worst_device = 0;

  // 1 where there is no element.
  double share_below(size_t threshold) const;
};

// Both are real and have the same number of elements.
Difference measure(const TensorView& bench, const TensorView& device,
                   const MeasureOptions& options);

// Elements that are exactly 0.
size_t count_zeros(const TensorView& view);

}  // namespace ait::api_check
