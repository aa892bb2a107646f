// Sums of one block of two tensors: the heart of every comparison.
//
// The float32 kernel keeps cheap things (extremes, estimates of the largest errors) in float32
// lanes and all sums in double. Three tricks make it fast:
//   - A block's NaN or Inf shows in Σg² or Σm², so nothing is tested per element.
//   - The exact largest relative error costs a division only where a quick estimate says it may be
//   beaten.
//   - Σ|d|/|g| needs no division per element: a/b + c/d = (ad + cb)/(bd), twice, so one division
//   serves four
//     lanes of elements. All terms are positive, so each step only rounds; products of four float32
//     values between 2^-23 and 2^100 cannot leave the range of double.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/pair_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

#ifndef AIT_METRICS_PAIR_CONSTANTS_
#define AIT_METRICS_PAIR_CONSTANTS_
namespace ait::metrics {
// Relative error of the estimated quotient: the hardware's reciprocal has at least 11 good bits.
constexpr double kEstimateSlack = 0x1p-10;
}  // namespace ait::metrics
#endif

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// Accumulators of the float32 kernel. No default member initialisers: an implicit constructor would
// not be compiled for this instruction set.
struct Accumulators {
  V64 gg, gm, mm, dd, g, m, absolute, relative;
  V64 max_absolute, max_relative;
  V32 min_g, min_m, max_g, max_m;
  V32 relative_floor;  // estimates up to this cannot beat max_relative
  size_t equal, zero_golden_mismatch;
};

HWY_INLINE V32 FloorBelow(double maximum) {
  return hn::Set(F32(), static_cast<float>(maximum * (1 - kEstimateSlack)));
}

HWY_INLINE Accumulators Start(double max_relative) {
  const V64 zero = hn::Zero(F64());
  const V32 high = hn::Set(F32(), std::numeric_limits<float>::infinity());
  const V32 low = hn::Neg(high);
  return {zero, zero, zero, zero, zero,
          zero, zero, zero, zero, hn::Set(F64(), max_relative),
          high, high, low,  low,  FloorBelow(max_relative),
          0,    0};
}

struct Fraction {
  V64 above;
  V64 below;
};

HWY_INLINE Fraction Plus(const Fraction& a, const Fraction& b) {
  return {hn::MulAdd(a.above, b.below, hn::Mul(b.above, a.below)), hn::Mul(a.below, b.below)};
}

HWY_INLINE Fraction AddProducts(Accumulators& sums, V64 g, V64 m) {
  const V64 d = hn::Sub(m, g);
  const V64 magnitude = hn::Abs(d);
  sums.gg = hn::MulAdd(g, g, sums.gg);
  sums.gm = hn::MulAdd(g, m, sums.gm);
  sums.mm = hn::MulAdd(m, m, sums.mm);
  sums.dd = hn::MulAdd(d, d, sums.dd);
  sums.g = hn::Add(sums.g, g);
  sums.m = hn::Add(sums.m, m);
  sums.absolute = hn::Add(sums.absolute, magnitude);
  sums.max_absolute = hn::Max(sums.max_absolute, magnitude);
  return {magnitude, hn::Abs(g)};
}

HWY_INLINE V32 EstimateQuotient(V32 above, V32 below) {
#if HWY_ARCH_X86
  return hn::Mul(above, hn::ApproximateReciprocal(below));
#else
  return hn::Div(above, below);
#endif
}

// The rare half of Step: golden values that count as zero, or a new largest relative error.
HWY_INLINE Fraction Look(Accumulators& sums, V64 g, V64 m, Fraction fraction) {
  const F64 d;
  const auto live = hn::Gt(fraction.below, hn::Set(d, kMaskEpsilon));
  const auto differs = hn::Gt(fraction.above, hn::Zero(d));
  sums.zero_golden_mismatch += hn::CountTrue(d, hn::AndNot(live, differs));
  const V64 relative = hn::Abs(hn::Sub(hn::Div(m, g), hn::Set(d, 1.0)));
  sums.max_relative = hn::Max(sums.max_relative, hn::IfThenElseZero(live, relative));
  sums.relative_floor = FloorBelow(Largest(d, sums.max_relative));
  return {hn::IfThenElseZero(live, fraction.above),
          hn::IfThenElse(live, fraction.below, hn::Set(d, 1.0))};
}

// One vector's worth of elements; returns their |d| and |g|, 0 and 1 where |g| is masked.
HWY_INLINE Fraction Step(Accumulators& sums, V32 g, V32 m) {
  const F32 d32;
  sums.min_g = hn::Min(sums.min_g, g);
  sums.max_g = hn::Max(sums.max_g, g);
  sums.min_m = hn::Min(sums.min_m, m);
  sums.max_m = hn::Max(sums.max_m, m);
  sums.equal += hn::CountTrue(d32, hn::Eq(g, m));
  const V64 g64 = hn::PromoteTo(F64(), g);
  const V64 m64 = hn::PromoteTo(F64(), m);
  const Fraction fraction = AddProducts(sums, g64, m64);
  const V32 magnitude = hn::Abs(g);
  const V32 estimate = EstimateQuotient(hn::Abs(hn::Sub(m, g)), magnitude);
  const auto masked = hn::Le(magnitude, hn::Set(d32, static_cast<float>(kMaskEpsilon)));
  if (HWY_LIKELY(hn::AllFalse(d32, hn::Or(masked, hn::Gt(estimate, sums.relative_floor)))))
    return fraction;
  return Look(sums, g64, m64, fraction);
}

template <class LoadG, class LoadM>
void PairBlockF32(const uint8_t* golden, const uint8_t* actual, size_t elements,
                  double max_relative, PairBlock& out) {
  const F32 d32;
  const size_t lanes = hn::Lanes(d32);
  const LoadG load_g;
  const LoadM load_m;
  Accumulators sums = Start(max_relative);
  size_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    const uint8_t* g = golden + i * LoadG::kBytes;
    const uint8_t* m = actual + i * LoadM::kBytes;
    const size_t gs = lanes * LoadG::kBytes;
    const size_t ms = lanes * LoadM::kBytes;
    const Fraction f0 = Step(sums, load_g(d32, g), load_m(d32, m));
    const Fraction f1 = Step(sums, load_g(d32, g + gs), load_m(d32, m + ms));
    const Fraction first = Plus(f0, f1);
    const Fraction f2 = Step(sums, load_g(d32, g + 2 * gs), load_m(d32, m + 2 * ms));
    const Fraction f3 = Step(sums, load_g(d32, g + 3 * gs), load_m(d32, m + 3 * ms));
    const Fraction second = Plus(f2, f3);
    const Fraction both = Plus(first, second);
    sums.relative = hn::Add(sums.relative, hn::Div(both.above, both.below));
  }
  out.gg = Total(sums.gg);
  out.gm = Total(sums.gm);
  out.mm = Total(sums.mm);
  out.dd = Total(sums.dd);
  out.absolute = Total(sums.absolute);
  out.relative = Total(sums.relative);
  out.max_absolute = Largest(F64(), sums.max_absolute);
  out.max_relative = Largest(F64(), sums.max_relative);
  out.golden.sum = Total(sums.g);
  out.golden.minimum = Smallest(d32, sums.min_g);
  out.golden.maximum = Largest(d32, sums.max_g);
  out.actual.sum = Total(sums.m);
  out.actual.minimum = Smallest(d32, sums.min_m);
  out.actual.maximum = Largest(d32, sums.max_m);
  out.differing = i - sums.equal;
  out.zero_golden_mismatch = sums.zero_golden_mismatch;
  out.compared = elements;

  // The last few elements, one by one and by the book.
  const size_t rest = elements - i;
  double rest_g[4 * HWY_MAX_BYTES / sizeof(double)];
  double rest_m[4 * HWY_MAX_BYTES / sizeof(double)];
  Widen<LoadG>(golden + i * LoadG::kBytes, rest, rest_g);
  Widen<LoadM>(actual + i * LoadM::kBytes, rest, rest_m);
  for (size_t k = 0; k < rest; ++k) {
    const double g = rest_g[k];
    const double m = rest_m[k];
    const double d = m - g;
    out.gg += g * g;
    out.gm += g * m;
    out.mm += m * m;
    out.dd += d * d;
    out.absolute += std::fabs(d);
    out.max_absolute = std::max(out.max_absolute, std::fabs(d));
    out.golden.sum += g;
    out.golden.minimum = std::min(out.golden.minimum, g);
    out.golden.maximum = std::max(out.golden.maximum, g);
    out.actual.sum += m;
    out.actual.minimum = std::min(out.actual.minimum, m);
    out.actual.maximum = std::max(out.actual.maximum, m);
    out.differing += g != m ? 1 : 0;
    if (std::fabs(g) > kMaskEpsilon) {
      const double relative = std::fabs(m / g - 1);
      out.relative += relative;
      out.max_relative = std::max(out.max_relative, relative);
    } else if (g != m) {
      ++out.zero_golden_mismatch;
    }
  }
  out.golden.squares = out.gg;
  out.actual.squares = out.mm;
}

template <class LoadG>
void PairBlockWithGolden(DType actual_type, const uint8_t* golden, const uint8_t* actual,
                         size_t elements, double max_relative, PairBlock& out) {
  switch (actual_type) {
    case DType::kFloat16:
      return PairBlockF32<LoadG, LoadFloat16>(golden, actual, elements, max_relative, out);
    case DType::kBFloat16:
      return PairBlockF32<LoadG, LoadBFloat16>(golden, actual, elements, max_relative, out);
    default:
      return PairBlockF32<LoadG, LoadFloat32>(golden, actual, elements, max_relative, out);
  }
}

void PairF32(DType golden_type, const uint8_t* golden, DType actual_type, const uint8_t* actual,
             size_t elements, double max_relative, PairBlock& out) {
  switch (golden_type) {
    case DType::kFloat16:
      return PairBlockWithGolden<LoadFloat16>(actual_type, golden, actual, elements, max_relative,
                                              out);
    case DType::kBFloat16:
      return PairBlockWithGolden<LoadBFloat16>(actual_type, golden, actual, elements, max_relative,
                                               out);
    default:
      return PairBlockWithGolden<LoadFloat32>(actual_type, golden, actual, elements, max_relative,
                                              out);
  }
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(PairF32);

void pair_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                    size_t elements, double max_relative, PairBlock& out) {
  HWY_DYNAMIC_DISPATCH(PairF32)
  (golden_type, static_cast<const uint8_t*>(golden), actual_type,
   static_cast<const uint8_t*>(actual), elements, max_relative, out);
}

}  // namespace ait::metrics
#endif
