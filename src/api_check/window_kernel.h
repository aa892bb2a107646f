// The loops of measure.cpp over finite elements, compiled for every instruction set and chosen at run
// time. All work on whole windows: where elements are missing at the end both sides have 0 there, which
// adds nothing. Internal to this library.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "api_check/measure.h"

namespace ait::api_check {

// Neighbours that say together what a rounding of the inputs does: one alone may be hit by accident
// in a way that cancels out.
inline constexpr size_t kWindow = 64;

struct Sums {
  double product = 0;
  double bench = 0;
  double device = 0;
  double bench_peak = 0;
  double device_peak = 0;
  size_t finite = 0;

  void add(const Sums& other) {
    product += other.product;
    bench += other.bench;
    device += other.device;
    bench_peak = std::max(bench_peak, other.bench_peak);
    device_peak = std::max(device_peak, other.device_peak);
    finite += other.finite;
  }
};

// Half the distance of neighbouring values of a floating-point type.
struct HalfSteps {
  double at_1;
  double smallest;
  double largest;
};

// Rounds to float32, as the machine does.
void round_to_float32(const double* values, size_t windows, double* out);

// Sums of squares.
double squares_of(const double* values, size_t windows);

// Everything but `finite`. A sum of squares is not finite where an element is not, or is very large.
Sums sums_of(const double* bench, const double* device, size_t windows);

// Whether all elements of a window are equal.
bool equal_window(const double* bench, const double* device);

// What a window adds to a Difference.
struct WindowDifference {
  double max_absolute = 0;
  double max_relative = 0;
  std::array<size_t, kThresholds.size()> below{};
  double roundings = 0;  // of the worst
  double squares = 0;    // of all roundings
};
struct WindowSides {
  const double* bench;
  const double* rounded;  // as the device's type can say it
  const double* device;
};
// `unit` is added to each element's half step; `epsilon` to the benchmark's elements where the device
// has 0. `max_relative` is that of the windows before: only a larger one costs a division.
WindowDifference compare_window(const WindowSides& sides, const HalfSteps& half_steps, double unit,
                                double epsilon, double max_relative);

}  // namespace ait::api_check
