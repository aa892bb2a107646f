// Sums of one block of two tensors: the heart of every comparison.
//
// Elements are widened to double, and all sums are in double. What makes it fast:
//   - A block's NaN or Inf shows in Σg² or Σm², so nothing is tested per element.
//   - Extremes, equality and golden values that count as zero are seen in the stored bits, before
//     widening, where a vector holds four times as many elements.
//   - Σ|d|/|g| needs no division per element: a/b + c/d = (ad + cb)/(bd), twice, so one division
//     serves four vectors of elements. All terms are positive, so each step only rounds; products
//     of four float32 values between 2^-23 and 2^100 cannot leave the range of double.
//   - The exact largest relative error costs a division only where |d| > largest so far · |g|.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/pair_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// No default member initialisers: an implicit constructor would not be compiled for this
// instruction set.
struct Accumulators {
  V64 gg, gm, mm, dd, g, m, absolute, relative, max_absolute;
  V64 floor;  // the largest relative error so far
  double max_relative;
  size_t equal, zero_golden_mismatch;
};

struct Fraction {
  V64 above;
  V64 below;
};

HWY_INLINE Fraction plus(const Fraction& a, const Fraction& b) {
  return {hn::MulAdd(a.above, b.below, hn::Mul(b.above, a.below)), hn::Mul(a.below, b.below)};
}

// Adds one vector to all sums; returns |d| and |g|.
template <class LoadG, class LoadM>
HWY_INLINE Fraction step(Accumulators& sums, const uint8_t* golden, const uint8_t* actual) {
  const V64 g = hn::PromoteTo(F64(), LoadG()(F32(), golden));
  const V64 m = hn::PromoteTo(F64(), LoadM()(F32(), actual));
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
  if (!std::is_same_v<LoadG, LoadM>) sums.equal += hn::CountTrue(F64(), hn::Eq(g, m));
  return {magnitude, hn::Abs(g)};
}

// By how much |d| exceeds what the largest relative error so far allows.
HWY_INLINE V64 excess_of(const Accumulators& sums, const Fraction& f) {
  return hn::NegMulAdd(sums.floor, f.below, f.above);
}

// The rare round: golden values that count as zero, or a new largest relative error. Elements are
// read again.
template <class LoadG, class LoadM>
HWY_INLINE Fraction look(Accumulators& sums, const uint8_t* golden, const uint8_t* actual) {
  const F64 d;
  const V64 g = hn::PromoteTo(d, LoadG()(F32(), golden));
  const V64 m = hn::PromoteTo(d, LoadM()(F32(), actual));
  const V64 magnitude = hn::Abs(g);
  const V64 error = hn::Abs(hn::Sub(m, g));
  const auto live = hn::Gt(magnitude, hn::Set(d, kMaskEpsilon));
  const auto differs = hn::Gt(error, hn::Zero(d));
  sums.zero_golden_mismatch += hn::CountTrue(d, hn::AndNot(live, differs));
  if (std::is_same_v<LoadG, LoadM>) {
    // +0 and -0 have different bits but are equal.
    const hn::RebindToUnsigned<F64> du;
    const auto other_bits = hn::Ne(hn::BitCast(du, g), hn::BitCast(du, m));
    sums.equal += hn::CountTrue(d, hn::And(hn::RebindMask(d, other_bits), hn::Not(differs)));
  }
  const V64 relative = hn::IfThenElseZero(live, hn::Abs(hn::Sub(hn::Div(m, g), hn::Set(d, 1.0))));
  sums.max_relative = std::max(sums.max_relative, largest(d, relative));
  return {hn::IfThenElseZero(live, error), hn::IfThenElse(live, magnitude, hn::Set(d, 1.0))};
}

template <class LoadG, class LoadM>
void pair_block_f32(const uint8_t* golden, const uint8_t* actual, size_t elements,
                    double max_relative, PairBlock& out, RowCuts* rows) {
  using StoredG = Stored<LoadG>;
  using StoredM = Stored<LoadM>;
  const F64 d64;
  const size_t lanes = hn::Lanes(d64);
  const size_t round = round_elements();
  const size_t gs = lanes * LoadG::kBytes;
  const size_t ms = lanes * LoadM::kBytes;
  // Quotients of float32 values can be so close that |m/g - 1| and |d|/|g| round to a different
  // order; those of 16-bit values are often equal, and must not be looked at again and again.
  constexpr double kFloorShare =
      LoadG::kBytes == 4 || LoadM::kBytes == 4 ? 1 - 0x1p-20 : 1 + 0x1p-50;
  const V64 zero = hn::Zero(d64);
  Accumulators sums = {zero,         zero, zero, zero, zero,
                       zero,         zero, zero, zero, hn::Set(d64, max_relative * kFloorShare),
                       max_relative, 0,    0};
  auto extremes_g = StoredG::start();
  auto extremes_m = StoredM::start();
  const bool cuts =
      rows != nullptr && rows->row_elements % round == 0 && rows->first_elements % round == 0;
  V64 rows_gg = zero;
  V64 rows_dd = zero;
  size_t stretch = 0;
  size_t end = cuts ? std::min(elements, rows->first_elements) : elements;
  size_t i = 0;
  for (;; i += round) {
    if (HWY_UNLIKELY(i + round > end)) {
      if (!cuts) break;
      rows->dd[stretch] = total(sums.dd);
      rows->gg[stretch++] = total(sums.gg);
      rows_dd = hn::Add(rows_dd, sums.dd);
      rows_gg = hn::Add(rows_gg, sums.gg);
      sums.dd = sums.gg = zero;
      if (end == elements) break;
      end = std::min(elements, end + rows->row_elements);
    }
    const uint8_t* g = golden + i * LoadG::kBytes;
    const uint8_t* m = actual + i * LoadM::kBytes;
    ahead(g, round * LoadG::kBytes);
    ahead(m, round * LoadM::kBytes);
    const auto bits_g = StoredG::load_round(g);
    const auto bits_m = StoredM::load_round(m);
    StoredG::add(bits_g, extremes_g);
    StoredM::add(bits_m, extremes_m);
    if constexpr (std::is_same_v<LoadG, LoadM>) sums.equal += StoredG::count_equal(bits_g, bits_m);

    Fraction f0 = step<LoadG, LoadM>(sums, g, m);
    Fraction f1 = step<LoadG, LoadM>(sums, g + gs, m + ms);
    Fraction f2 = step<LoadG, LoadM>(sums, g + 2 * gs, m + 2 * ms);
    Fraction f3 = step<LoadG, LoadM>(sums, g + 3 * gs, m + 3 * ms);
    const V64 excess = hn::Max(hn::Max(excess_of(sums, f0), excess_of(sums, f1)),
                               hn::Max(excess_of(sums, f2), excess_of(sums, f3)));
    if (HWY_UNLIKELY(StoredG::any_masked(bits_g) || !hn::AllFalse(d64, hn::Gt(excess, zero)))) {
      f0 = look<LoadG, LoadM>(sums, g, m);
      f1 = look<LoadG, LoadM>(sums, g + gs, m + ms);
      f2 = look<LoadG, LoadM>(sums, g + 2 * gs, m + 2 * ms);
      f3 = look<LoadG, LoadM>(sums, g + 3 * gs, m + 3 * ms);
      sums.floor = hn::Set(d64, sums.max_relative * kFloorShare);
    }
    const Fraction all = plus(plus(f0, f1), plus(f2, f3));
    sums.relative = hn::Add(sums.relative, hn::Div(all.above, all.below));
  }
  if (i > 0) {
    StoredG::finish(extremes_g, out.golden);
    StoredM::finish(extremes_m, out.actual);
  }
  if (cuts) {
    rows->done = true;
    sums.gg = rows_gg;
    sums.dd = rows_dd;
  }
  out.gg = total(sums.gg);
  out.gm = total(sums.gm);
  out.mm = total(sums.mm);
  out.dd = total(sums.dd);
  out.absolute = total(sums.absolute);
  out.relative = total(sums.relative);
  out.max_absolute = largest(d64, sums.max_absolute);
  out.max_relative = sums.max_relative;
  out.golden.sum = total(sums.g);
  out.actual.sum = total(sums.m);
  out.differing = i - sums.equal;
  out.zero_golden_mismatch = sums.zero_golden_mismatch;
  out.compared = elements;

  // The last few elements, one by one and by the book.
  const size_t rest = elements - i;
  double rest_g[4 * HWY_MAX_BYTES / sizeof(double)];
  double rest_m[4 * HWY_MAX_BYTES / sizeof(double)];
  widen<LoadG>(golden + i * LoadG::kBytes, rest, rest_g);
  widen<LoadM>(actual + i * LoadM::kBytes, rest, rest_m);
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
void pair_block_with_golden(DType actual_type, const uint8_t* golden, const uint8_t* actual,
                            size_t elements, double max_relative, PairBlock& out, RowCuts* rows) {
  switch (actual_type) {
    case DType::kFloat16:
      return pair_block_f32<LoadG, LoadFloat16>(golden, actual, elements, max_relative, out, rows);
    case DType::kBFloat16:
      return pair_block_f32<LoadG, LoadBFloat16>(golden, actual, elements, max_relative, out, rows);
    default:
      return pair_block_f32<LoadG, LoadFloat32>(golden, actual, elements, max_relative, out, rows);
  }
}

void pair_f32(DType golden_type, const uint8_t* golden, DType actual_type, const uint8_t* actual,
              size_t elements, double max_relative, PairBlock& out, RowCuts* rows) {
  switch (golden_type) {
    case DType::kFloat16:
      return pair_block_with_golden<LoadFloat16>(actual_type, golden, actual, elements,
                                                 max_relative, out, rows);
    case DType::kBFloat16:
      return pair_block_with_golden<LoadBFloat16>(actual_type, golden, actual, elements,
                                                  max_relative, out, rows);
    default:
      return pair_block_with_golden<LoadFloat32>(actual_type, golden, actual, elements,
                                                 max_relative, out, rows);
  }
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(pair_f32);

void pair_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                    size_t elements, double max_relative, PairBlock& out, RowCuts* rows) {
  HWY_DYNAMIC_DISPATCH(pair_f32)
  (golden_type, static_cast<const uint8_t*>(golden), actual_type,
   static_cast<const uint8_t*>(actual), elements, max_relative, out, rows);
}

}  // namespace ait::metrics
#endif
