// Sum, squares, magnitudes and extremes of one block of one tensor, and its elements as doubles.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/statistics_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

void add_one(double value, double scale, SideBlock& out) {
  const double scaled = value * scale;
  out.sum += scaled;
  out.squares += scaled * scaled;
  out.magnitudes += std::fabs(scaled);
  out.minimum = std::min(out.minimum, value);
  out.maximum = std::max(out.maximum, value);
}

template <class Load>
void statistics_block_f32(const uint8_t* data, size_t elements, SideBlock& out) {
  const F64 d64;
  const size_t round = round_elements();
  // Two of each: one would wait for its own last addition.
  V64 sum0 = hn::Zero(d64), sum1 = sum0, squares0 = sum0, squares1 = sum0, magnitudes0 = sum0,
      magnitudes1 = sum0;
  const auto add = [&](V64 a, V64 b) HWY_ATTR {
    sum0 = hn::Add(sum0, a);
    sum1 = hn::Add(sum1, b);
    squares0 = hn::MulAdd(a, a, squares0);
    squares1 = hn::MulAdd(b, b, squares1);
    magnitudes0 = hn::Add(magnitudes0, hn::Abs(a));
    magnitudes1 = hn::Add(magnitudes1, hn::Abs(b));
  };
  auto extremes = Stored<Load>::start();
  size_t i = 0;
  for (; i + round <= elements; i += round) {
    const uint8_t* at = data + i * Load::kBytes;
    ahead(at, round * Load::kBytes);
    Stored<Load>::add(Stored<Load>::load_round(at), extremes);
    const VFull first = load_first<Load, true>(at);
    const VFull second = load_second<Load, true>(at);
    add(widen_lower(first), widen_upper(first));
    add(widen_lower(second), widen_upper(second));
  }
  out.sum = total(hn::Add(sum0, sum1));
  out.squares = total(hn::Add(squares0, squares1));
  out.magnitudes = total(hn::Add(magnitudes0, magnitudes1));
  if (i > 0) Stored<Load>::finish(extremes, data, i, out);
  const size_t count = elements - i;
  double rest[4 * HWY_MAX_BYTES / sizeof(double)];
  widen<Load>(data + i * Load::kBytes, count, rest);
  for (size_t k = 0; k < count; ++k) add_one(rest[k], 1.0, out);
}

void statistics_f32(DType type, const uint8_t* data, size_t elements, SideBlock& out) {
  switch (type) {
    case DType::kFloat16:
      return statistics_block_f32<LoadFloat16>(data, elements, out);
    case DType::kBFloat16:
      return statistics_block_f32<LoadBFloat16>(data, elements, out);
    default:
      return statistics_block_f32<LoadFloat32>(data, elements, out);
  }
}

void widen_f64(DType type, const uint8_t* data, size_t elements, double* out) {
  switch (type) {
    case DType::kFloat16:
      return widen<LoadFloat16>(data, elements, out);
    case DType::kBFloat16:
      return widen<LoadBFloat16>(data, elements, out);
    default:
      return widen<LoadFloat32>(data, elements, out);
  }
}

void statistics_f64(const double* data, size_t elements, double scale, SideBlock& out) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  V64 sum = hn::Zero(d), squares = sum, magnitudes = sum;
  V64 min = hn::Set(d, kInfinity);
  V64 max = hn::Neg(min);
  const V64 factor = hn::Set(d, scale);
  size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const V64 v = hn::LoadU(d, data + i);
    const V64 s = hn::Mul(v, factor);
    sum = hn::Add(sum, s);
    squares = hn::MulAdd(s, s, squares);
    magnitudes = hn::Add(magnitudes, hn::Abs(s));
    min = hn::Min(min, v);
    max = hn::Max(max, v);
  }
  out.sum = total(sum);
  out.squares = total(squares);
  out.magnitudes = total(magnitudes);
  out.minimum = smallest(d, min);
  out.maximum = largest(d, max);
  for (; i < elements; ++i) add_one(data[i], scale, out);
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(statistics_f32);
HWY_EXPORT(statistics_f64);
HWY_EXPORT(widen_f64);

void statistics_block_f32(DType type, const void* data, size_t elements, SideBlock& out) {
  HWY_DYNAMIC_DISPATCH(statistics_f32)(type, static_cast<const uint8_t*>(data), elements, out);
}

void statistics_block_f64(const double* data, size_t elements, double scale, SideBlock& out) {
  HWY_DYNAMIC_DISPATCH(statistics_f64)(data, elements, scale, out);
}

void widen_block(DType dtype, const void* data, size_t elements, double* out) {
  HWY_DYNAMIC_DISPATCH(widen_f64)(dtype, static_cast<const uint8_t*>(data), elements, out);
}

}  // namespace ait::metrics
#endif
