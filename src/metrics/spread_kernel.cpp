// How errors are spread: the median and the worst of many.
//
// Four medians of a hundred numbers by std::nth_element take a third of the time of comparing the
// tensor, since every second of its branches is mispredicted. A median is found here by halving the
// range that it is in: each step counts how many numbers are below, without a branch.
#include "metrics/profile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/spread_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// The upper bits of numbers that are not negative, which have the order of the numbers: 10 bits of
// the fraction, a relative error of 5e-4.
constexpr unsigned kKeyShift = 42;
using I32 = hn::ScalableTag<int32_t>;

struct Keys {
  int32_t values[kMedianSample + HWY_MAX_BYTES / sizeof(int32_t)];
  size_t count;
};

int32_t key_of(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return static_cast<int32_t>(bits >> kKeyShift);
}

// The middle of the numbers that have this key; 0 and infinity are themselves.
double value_of(int32_t key) {
  const bool is_itself = key == 0 || key == key_of(kInfinity);
  const uint64_t bits =
      (static_cast<uint64_t>(key) << kKeyShift) + (is_itself ? 0 : uint64_t{1} << (kKeyShift - 1));
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

Keys keys_of(const double* values, size_t count) {
  Keys keys;
  keys.count = count;
  for (size_t i = 0; i < count; ++i) keys.values[i] = key_of(values[i]);
  // What fills the last vector is above all others.
  std::fill_n(keys.values + count, hn::Lanes(I32()), std::numeric_limits<int32_t>::max());
  return keys;
}

size_t count_up_to(const Keys& keys, int32_t limit) {
  const I32 d;
  const auto top = hn::Set(d, limit);
  size_t above = 0;
  size_t i = 0;
  for (; i < keys.count; i += hn::Lanes(d))
    above += hn::CountTrue(d, hn::Gt(hn::LoadU(d, keys.values + i), top));
  return i - above;
}

// The number that has `rank` smaller ones.
double of_rank(const Keys& keys, size_t rank) {
  int32_t low = std::numeric_limits<int32_t>::max();
  int32_t high = 0;
  for (size_t i = 0; i < keys.count; ++i) {
    low = std::min(low, keys.values[i]);
    high = std::max(high, keys.values[i]);
  }
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const bool is_above = count_up_to(keys, middle) <= rank;
    low = is_above ? middle + 1 : low;
    high = is_above ? high : middle;
  }
  return value_of(low);
}

double mean_of(const double* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

HWY_INLINE double error_of(double dd, double gg, double least) {
  const double quotient = dd / std::max(gg, least);
  return dd > 0 ? quotient : 0;
}

void take(const double* values, size_t count, double* sample) {
  if (count <= kMedianSample) {
    std::copy_n(values, count, sample);
  } else {
    for (size_t i = 0; i < kMedianSample; ++i)
      sample[i] = values[spread_index(i, kMedianSample, count)];
  }
}

Spread spread(const double* dd, const double* gg, size_t count, double floor_share) {
  const size_t taken = std::min(count, kMedianSample);
  double sample_g[kMedianSample];
  double sample_d[kMedianSample];
  take(gg, count, sample_g);
  take(dd, count, sample_d);
  const Keys golden = keys_of(sample_g, taken);
  const size_t zeros = count_up_to(golden, 0);
  const size_t live = taken - zeros;
  Spread out;
  out.usual_golden = live > 0 ? of_rank(golden, zeros + (live - 1) / 2) : mean_of(gg, count);
  const double least = out.usual_golden * floor_share;
  for (size_t i = 0; i < taken; ++i) sample_d[i] = error_of(sample_d[i], sample_g[i], least);
  out.usual = of_rank(keys_of(sample_d, taken), (taken - 1) / 2);
  out.least = least;
  return out;
}

// Divides only where an error is larger than all before.
Worst worst(const double* dd, const double* gg, size_t count, double least) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  const V64 zero = hn::Zero(d);
  const V64 lowest = hn::Set(d, least);
  Worst out;
  V64 limit = zero;
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V64 below = hn::Max(hn::LoadU(d, gg + i), lowest);
    const V64 excess = hn::NegMulAdd(limit, below, hn::LoadU(d, dd + i));
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(excess, zero)))) continue;
    for (size_t k = i; k < i + lanes; ++k) out.add(error_of(dd[k], gg[k], least), k);
    limit = hn::Set(d, out.error);
  }
  for (; i < count; ++i) out.add(error_of(dd[i], gg[i], least), i);
  return out;
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(spread);
HWY_EXPORT(worst);

Spread spread_of(const double* dd, const double* gg, size_t count, double floor_share) {
  return HWY_DYNAMIC_DISPATCH(spread)(dd, gg, count, floor_share);
}

Worst worst_of(const double* dd, const double* gg, size_t count, double least) {
  return HWY_DYNAMIC_DISPATCH(worst)(dd, gg, count, least);
}

}  // namespace ait::metrics
#endif
