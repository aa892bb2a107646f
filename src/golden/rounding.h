// The narrow types' rounding, for the bounds and for the roundings that are part of a definition.
#pragma once

#include "tensor/dtype.h"

namespace ait::golden {

// Of float32, in which devices sum up.
inline constexpr double kFloat32Unit = 0x1p-24;

// By how much more than the expected error of its roundings a sound kernel may be off. Errors of
// many roundings add up like a random walk; four times its expected length is never reached in
// practice, and a wrong kernel is off by far more.
inline constexpr double kMargin = 4;

// Half the distance to the next value of the type at this magnitude: the most that one rounding
// changes it. 0.5 for integers, 0 for float64.
double half_step(DType dtype, double magnitude);

// The nearest value of the type, ties to even; floats overflow to infinity, integers clamp. NaN
// stays, and becomes 0 in an integer.
double round_to(DType dtype, double value);

// To whole numbers, ties to even, then into the range of int8.
double quantised(double value);

}  // namespace ait::golden
