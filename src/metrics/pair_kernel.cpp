// Sums of one block of two tensors: the heart of every comparison.
//
// Elements are widened to double, and all sums are in double. What makes it fast:
//   - A block's NaN or Inf shows in Σg² or Σm², so nothing is tested per element.
//   - Extremes, equality and golden values that count as zero are seen in the stored bits, before
//     widening, where a vector holds four times as many elements.
//   - Σ|d|/|g| needs no division per element: a/b + c/d = (ad + cb)/(bd), three times, so one
//     division serves eight vectors of elements. All terms are positive, so each step only rounds;
//     products of eight float32 values between 2^-23 and 2^100 cannot leave the range of double.
//   - The exact largest relative error costs a division only where |d| > largest so far · |g|.
//   - Σgm is (Σg² + Σm² - Σd²) / 2. What rounding does to it is as small as in Σg² and Σm², unless
//     one of these is far smaller than the other: then it is summed after all.
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
struct Sums {
  V64 gg, mm, dd, g, m, absolute, relative, max_absolute;
  V64 excess;  // the most that |d| exceeds what the largest relative error so far allows
};

// What the stored bits tell.
template <class LoadG, class LoadM>
struct Extremes {
  typename Stored<LoadG>::Extremes g;
  typename Stored<LoadM>::Extremes m;
  size_t equal;
};

// What changes in few rounds only.
struct Seen {
  V64 floor;  // the largest relative error so far
  double max_relative;
  size_t equal, zero_golden_mismatch;
};

struct Fraction {
  V64 above;
  V64 below;
};

HWY_INLINE Fraction plus(Fraction a, Fraction b) {
  return {hn::MulAdd(a.above, b.below, hn::Mul(b.above, a.below)), hn::Mul(a.below, b.below)};
}

template <class Load>
HWY_INLINE V64 load_wide(const uint8_t* at) {
  return hn::PromoteTo(F64(), Load()(F32(), at));
}

// Adds one vector to all sums; returns |d| and |g|.
HWY_INLINE Fraction step(V64 g, V64 m, V64 floor, Sums& sums) {
  const V64 d = hn::Sub(m, g);
  const V64 magnitude = hn::Abs(d);
  sums.gg = hn::MulAdd(g, g, sums.gg);
  sums.mm = hn::MulAdd(m, m, sums.mm);
  sums.dd = hn::MulAdd(d, d, sums.dd);
  sums.g = hn::Add(sums.g, g);
  sums.m = hn::Add(sums.m, m);
  sums.absolute = hn::Add(sums.absolute, magnitude);
  sums.max_absolute = hn::Max(sums.max_absolute, magnitude);
  const V64 golden = hn::Abs(g);
  sums.excess = hn::Max(sums.excess, hn::NegMulAdd(floor, golden, magnitude));
  return {magnitude, golden};
}

// |d| and |g| of what is no golden value that counts as zero; these and a new largest relative error
// are noted.
template <class LoadG, class LoadM>
HWY_INLINE Fraction look(const uint8_t* golden, const uint8_t* actual, Seen& seen) {
  const F64 d;
  const V64 g = load_wide<LoadG>(golden);
  const V64 m = load_wide<LoadM>(actual);
  const V64 magnitude = hn::Abs(g);
  const V64 error = hn::Abs(hn::Sub(m, g));
  const auto live = hn::Gt(magnitude, hn::Set(d, kMaskEpsilon));
  const auto differs = hn::Gt(error, hn::Zero(d));
  seen.zero_golden_mismatch += hn::CountTrue(d, hn::AndNot(live, differs));
  if (std::is_same_v<LoadG, LoadM>) {
    // +0 and -0 have different bits but are equal.
    const hn::RebindToUnsigned<F64> du;
    const auto other_bits = hn::Ne(hn::BitCast(du, g), hn::BitCast(du, m));
    seen.equal += hn::CountTrue(d, hn::And(hn::RebindMask(d, other_bits), hn::Not(differs)));
  }
  const V64 relative = hn::IfThenElseZero(live, hn::Abs(hn::Sub(hn::Div(m, g), hn::Set(d, 1.0))));
  seen.max_relative = std::max(seen.max_relative, largest(d, relative));
  return {hn::IfThenElseZero(live, error), hn::IfThenElse(live, magnitude, hn::Set(d, 1.0))};
}

// Quotients of float32 values can be so close that |m/g - 1| and |d|/|g| round to a different order;
// those of 16-bit values are often equal, and must not be looked at again and again.
template <class LoadG, class LoadM>
constexpr double kFloorShare = LoadG::kBytes == 4 || LoadM::kBytes == 4 ? 1 - 0x1p-20 : 1 + 0x1p-50;

// The rare case: a golden value counts as zero, or there is a new largest relative error. Elements
// are read again. Returns the sum of relative errors.
template <class LoadG, class LoadM>
HWY_NOINLINE V64 look_closer(const uint8_t* golden, const uint8_t* actual, size_t elements,
                             Seen& seen) {
  const F64 d;
  V64 relative = hn::Zero(d);
  for (size_t i = 0; i < elements; i += hn::Lanes(d)) {
    const Fraction f =
        look<LoadG, LoadM>(golden + i * LoadG::kBytes, actual + i * LoadM::kBytes, seen);
    relative = hn::Add(relative, hn::Div(f.above, f.below));
  }
  seen.floor = hn::Set(d, seen.max_relative * kFloorShare<LoadG, LoadM>);
  return relative;
}

// Adds one round to all sums; returns the sum of its relative errors.
template <class LoadG, class LoadM>
HWY_INLINE Fraction add_round(const uint8_t* g, const uint8_t* m, V64 floor, Sums& sums,
                              Extremes<LoadG, LoadM>& extremes) {
  using StoredG = Stored<LoadG>;
  using StoredM = Stored<LoadM>;
  constexpr bool kSameType = std::is_same_v<LoadG, LoadM>;
  ahead(g, round_elements() * LoadG::kBytes);
  ahead(m, round_elements() * LoadM::kBytes);
  const auto bits_g = StoredG::load_round(g);
  const auto bits_m = StoredM::load_round(m);
  StoredG::add(bits_g, extremes.g);
  StoredM::add(bits_m, extremes.m);
  const VFull first_g = load_first<LoadG, kSameType>(g);
  const VFull first_m = load_first<LoadM, kSameType>(m);
  const VFull second_g = load_second<LoadG, kSameType>(g);
  const VFull second_m = load_second<LoadM, kSameType>(m);
  if constexpr (kSameType) {
    extremes.equal += StoredG::count_equal(bits_g, bits_m);
  } else {
    extremes.equal += hn::CountTrue(Full(), hn::Eq(first_g, first_m)) +
                      hn::CountTrue(Full(), hn::Eq(second_g, second_m));
  }
  const Fraction f0 = step(widen_lower(first_g), widen_lower(first_m), floor, sums);
  const Fraction f1 = step(widen_upper(first_g), widen_upper(first_m), floor, sums);
  const Fraction f2 = step(widen_lower(second_g), widen_lower(second_m), floor, sums);
  const Fraction f3 = step(widen_upper(second_g), widen_upper(second_m), floor, sums);
  return plus(plus(f0, f1), plus(f2, f3));
}

// What one or two rounds add to the sum of relative errors. `last_g` is the round that `g` begins, or
// the one after it.
template <class LoadG, class LoadM>
HWY_INLINE V64 relative_of(Fraction sum, const uint8_t* g, const uint8_t* last_g, const uint8_t* m,
                           Sums& sums, Seen& seen) {
  using StoredG = Stored<LoadG>;
  const F64 d;
  const bool masked = StoredG::any_masked(StoredG::load_round(g), StoredG::load_round(last_g));
  const bool exceeds = !hn::AllFalse(d, hn::Gt(sums.excess, hn::Zero(d)));
  sums.excess = hn::Zero(d);
  if (HWY_LIKELY(!masked && !exceeds)) return hn::Div(sum.above, sum.below);
  const size_t elements = (last_g == g ? 1 : 2) * round_elements();
  return look_closer<LoadG, LoadM>(g, m, elements, seen);
}

// Σgm. Up to kMostApart the rounding of Σg², Σm² and Σd² is below 1e-12 of |g| |m|.
constexpr double kMostApart = 0x1p8;
template <class LoadG, class LoadM>
double product_of(const uint8_t* golden, const uint8_t* actual, size_t elements,
                  const PairBlock& block) {
  if (std::max(block.gg, block.mm) <= kMostApart * std::min(block.gg, block.mm))
    return (block.gg - block.dd + block.mm) / 2;
  const size_t lanes = hn::Lanes(F64());
  V64 sum = hn::Zero(F64());
  for (size_t i = 0; i < elements; i += lanes)
    sum = hn::MulAdd(load_wide<LoadG>(golden + i * LoadG::kBytes),
                     load_wide<LoadM>(actual + i * LoadM::kBytes), sum);
  return total(sum);
}

template <class LoadG, class LoadM>
void pair_block_f32(const uint8_t* golden, const uint8_t* actual, size_t elements,
                    double max_relative, PairBlock& out, RowCuts* rows) {
  using StoredG = Stored<LoadG>;
  using StoredM = Stored<LoadM>;
  const F64 d64;
  const size_t round = round_elements();
  const V64 zero = hn::Zero(d64);
  Sums sums = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
  Extremes<LoadG, LoadM> extremes = {StoredG::start(), StoredM::start(), 0};
  Seen seen = {hn::Set(d64, max_relative * kFloorShare<LoadG, LoadM>), max_relative, 0, 0};
  const bool cuts =
      rows != nullptr && rows->row_elements % round == 0 && rows->first_elements % round == 0;
  V64 rows_gg = zero;
  V64 rows_dd = zero;
  size_t stretch = 0;
  size_t end = cuts ? std::min(elements, rows->first_elements) : elements;
  size_t i = 0;
  for (;;) {
    const uint8_t* g = golden + i * LoadG::kBytes;
    const uint8_t* m = actual + i * LoadM::kBytes;
    if (HWY_LIKELY(i + 2 * round <= end)) {
      const uint8_t* next_g = g + round * LoadG::kBytes;
      const uint8_t* next_m = m + round * LoadM::kBytes;
      const Fraction f0 = add_round<LoadG, LoadM>(g, m, seen.floor, sums, extremes);
      const Fraction f1 = add_round<LoadG, LoadM>(next_g, next_m, seen.floor, sums, extremes);
      sums.relative =
          hn::Add(sums.relative, relative_of<LoadG, LoadM>(plus(f0, f1), g, next_g, m, sums, seen));
      i += 2 * round;
    } else if (i + round <= end) {
      const Fraction f = add_round<LoadG, LoadM>(g, m, seen.floor, sums, extremes);
      sums.relative = hn::Add(sums.relative, relative_of<LoadG, LoadM>(f, g, g, m, sums, seen));
      i += round;
    } else {
      if (!cuts) break;
      rows->dd[stretch] = total(sums.dd);
      rows->gg[stretch++] = total(sums.gg);
      rows_dd = hn::Add(rows_dd, sums.dd);
      rows_gg = hn::Add(rows_gg, sums.gg);
      sums.dd = sums.gg = zero;
      if (end == elements) break;
      end = std::min(elements, end + rows->row_elements);
    }
  }
  if (i > 0) {
    StoredG::finish(extremes.g, golden, i, out.golden);
    StoredM::finish(extremes.m, actual, i, out.actual);
  }
  if (cuts) {
    rows->done = true;
    sums.gg = rows_gg;
    sums.dd = rows_dd;
  }
  out.gg = total(sums.gg);
  out.mm = total(sums.mm);
  out.dd = total(sums.dd);
  out.gm = product_of<LoadG, LoadM>(golden, actual, i, out);
  out.absolute = total(sums.absolute);
  out.relative = total(sums.relative);
  out.max_absolute = largest(d64, sums.max_absolute);
  out.max_relative = seen.max_relative;
  out.golden.sum = total(sums.g);
  out.actual.sum = total(sums.m);
  out.differing = i - extremes.equal - seen.equal;
  out.zero_golden_mismatch = seen.zero_golden_mismatch;
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
