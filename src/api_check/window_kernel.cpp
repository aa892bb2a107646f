#include "api_check/window_kernel.h"

// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "api_check/window_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace ait::api_check::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
// Eight lanes at most: two vectors go into a window a whole number of times.
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

HWY_INLINE double total(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }
HWY_INLINE double largest(V v) { return hn::GetLane(hn::MaxOfLanes(D(), v)); }

void round_to_float32(const double* values, size_t windows, double* out) {
  const D d;
  const hn::Rebind<float, D> narrow;
  for (size_t i = 0; i < windows * kWindow; i += hn::Lanes(d))
    hn::StoreU(hn::PromoteTo(d, hn::DemoteTo(narrow, hn::LoadU(d, values + i))), d, out + i);
}

double squares_of(const double* values, size_t windows) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V even = hn::Zero(d), odd = hn::Zero(d);
  for (size_t i = 0; i < windows * kWindow; i += 2 * lanes) {
    const V a = hn::LoadU(d, values + i), b = hn::LoadU(d, values + i + lanes);
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  return total(hn::Add(even, odd));
}

struct VectorSums {
  V product, bench, device, bench_peak, device_peak;

  HWY_INLINE void add(V b, V n) {
    product = hn::MulAdd(b, n, product);
    bench = hn::MulAdd(b, b, bench);
    device = hn::MulAdd(n, n, device);
    bench_peak = hn::Max(bench_peak, hn::Abs(b));
    device_peak = hn::Max(device_peak, hn::Abs(n));
  }
};

Sums sums_of(const double* bench, const double* device, size_t windows) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V zero = hn::Zero(d);
  VectorSums even{zero, zero, zero, zero, zero}, odd = even;
  for (size_t i = 0; i < windows * kWindow; i += 2 * lanes) {
    even.add(hn::LoadU(d, bench + i), hn::LoadU(d, device + i));
    odd.add(hn::LoadU(d, bench + i + lanes), hn::LoadU(d, device + i + lanes));
  }
  return {.product = total(hn::Add(even.product, odd.product)),
          .bench = total(hn::Add(even.bench, odd.bench)),
          .device = total(hn::Add(even.device, odd.device)),
          .bench_peak = largest(hn::Max(even.bench_peak, odd.bench_peak)),
          .device_peak = largest(hn::Max(even.device_peak, odd.device_peak))};
}

bool equal_window(const double* bench, const double* device) {
  const D d;
  auto equal = hn::FirstN(d, kWindow);
  for (size_t i = 0; i < kWindow; i += hn::Lanes(d))
    equal = hn::And(equal, hn::Eq(hn::LoadU(d, bench + i), hn::LoadU(d, device + i)));
  return hn::AllTrue(d, equal);
}

HWY_INLINE V half_step(V value, const HalfSteps& half_steps) {
  const D d;
  const hn::RebindToUnsigned<D> bits;
  const V power =
      hn::BitCast(d, hn::And(hn::BitCast(bits, value), hn::Set(bits, 0x7ff0000000000000)));
  const V step =
      hn::Max(hn::Mul(power, hn::Set(d, half_steps.at_1)), hn::Set(d, half_steps.smallest));
  return hn::Min(step, hn::Set(d, half_steps.largest));
}

// What a difference is held against.
HWY_INLINE V size_of(V b, V n, double epsilon) {
  const D d;
  return hn::Abs(hn::IfThenElse(hn::Eq(n, hn::Zero(d)), hn::Add(b, hn::Set(d, epsilon)), b));
}

HWY_INLINE void count_relative(const WindowSides& sides, double epsilon, WindowDifference& out) {
  const D d;
  V high = hn::Zero(d);
  for (size_t i = 0; i < kWindow; i += hn::Lanes(d)) {
    const V b = hn::LoadU(d, sides.rounded + i), n = hn::LoadU(d, sides.device + i);
    const V absolute = hn::Abs(hn::Sub(b, n));
    const V relative = hn::IfThenElseZero(hn::Gt(absolute, hn::Zero(d)),
                                          hn::Div(absolute, size_of(b, n, epsilon)));
    high = hn::Max(high, relative);
    for (size_t k = 0; k < kThresholds.size(); ++k)
      out.below[k] += hn::CountTrue(d, hn::Lt(relative, hn::Set(d, kThresholds[k])));
  }
  out.max_relative = largest(high);
}

WindowDifference compare_window(const WindowSides& sides, const HalfSteps& half_steps, double unit,
                                double epsilon, double max_relative) {
  // A little less, since a product is rounded: what is below it is below by a quotient, too.
  constexpr double kLess = 1 - 0x1p-40;
  const D d;
  const V small = hn::Set(d, std::min(max_relative, kThresholds.back()) * kLess);
  V high = hn::Zero(d), worst = high, squares = high;
  auto is_small = hn::FirstN(d, kWindow);
  for (size_t i = 0; i < kWindow; i += hn::Lanes(d)) {
    const V b = hn::LoadU(d, sides.rounded + i), n = hn::LoadU(d, sides.device + i);
    const V exact = hn::LoadU(d, sides.bench + i);
    const V absolute = hn::Abs(hn::Sub(b, n));
    high = hn::Max(high, absolute);
    is_small = hn::And(is_small, hn::Lt(absolute, hn::Mul(small, size_of(b, n, epsilon))));
    const V off = hn::Div(hn::Abs(hn::Sub(n, exact)),
                          hn::Add(half_step(exact, half_steps), hn::Set(d, unit)));
    const V roundings = hn::IfThenZeroElse(hn::Eq(n, b), off);
    worst = hn::Max(worst, roundings);
    squares = hn::MulAdd(roundings, roundings, squares);
  }
  WindowDifference out;
  out.max_absolute = largest(high);
  out.roundings = largest(worst);
  out.squares = total(squares);
  if (hn::AllTrue(d, is_small))
    out.below.fill(kWindow);
  else
    count_relative(sides, epsilon, out);
  return out;
}

}  // namespace ait::api_check::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::api_check {

HWY_EXPORT(round_to_float32);
HWY_EXPORT(squares_of);
HWY_EXPORT(sums_of);
HWY_EXPORT(equal_window);
HWY_EXPORT(compare_window);

void round_to_float32(const double* values, size_t windows, double* out) {
  HWY_DYNAMIC_DISPATCH(round_to_float32)(values, windows, out);
}

double squares_of(const double* values, size_t windows) {
  return HWY_DYNAMIC_DISPATCH(squares_of)(values, windows);
}

Sums sums_of(const double* bench, const double* device, size_t windows) {
  return HWY_DYNAMIC_DISPATCH(sums_of)(bench, device, windows);
}

bool equal_window(const double* bench, const double* device) {
  return HWY_DYNAMIC_DISPATCH(equal_window)(bench, device);
}

WindowDifference compare_window(const WindowSides& sides, const HalfSteps& half_steps, double unit,
                                double epsilon, double max_relative) {
  return HWY_DYNAMIC_DISPATCH(compare_window)(sides, half_steps, unit, epsilon, max_relative);
}

}  // namespace ait::api_check
#endif
