// Kullback-Leibler divergence of softmax(golden) from softmax(actual), block by block.
//
// With weights w = e^g and d = m - g:   KL = ln(Σ w e^d / Σ w) - Σ w d / Σ w.
// Blocks carry their sums relative to their own maximum, so one pass over memory is enough.
//
// The float32 kernel sums w, w d and the excess w (e^d - 1 - d). That its weights are wrong by some
// 1e-7 matters as little as for KL itself: it is KL under slightly other weights. What matters is
// the rounding of the sums, up to kSumError of the average excess B, because Σ w e^d is had from
// them. KL is as large as B where the average difference is 0, and far smaller where all that weighs
// differs by the same amount. So a block whose B is more than kMostExcess times its own KL is summed
// once more with that average taken out of d, which does not change KL; one that is not good even
// then is left to the double kernel. The divergence of a tensor is at least the mean of those of its
// blocks by golden's weight, and grows with the weight that a block has in actual alone (hence at
// most 1 is counted), so that the bound of every block holds for it: 1e-5 of the value and 1e-12.
#include "metrics/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/kl_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

#ifndef AIT_METRICS_KL_CONSTANTS_
#define AIT_METRICS_KL_CONSTANTS_
namespace ait::metrics {

constexpr double kLog2E = 0x1.71547652b82fep0;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;  // ln 2 - kLn2

// e^r on |r| <= ln(2)/2, interpolated at Chebyshev nodes: relative error 4e-18 and 1.6e-7.
constexpr double kExp64[] = {0x1.0p+0,
                             0x1.0p+0,
                             0x1.0000000000011p-1,
                             0x1.555555555555ap-3,
                             0x1.555555554f0bap-5,
                             0x1.111111110f21ep-7,
                             0x1.6c16c1880029fp-10,
                             0x1.a01a01b1461c5p-13,
                             0x1.a01991a10d9aep-16,
                             0x1.71ddf56d8deb5p-19,
                             0x1.28b4101c77212p-22,
                             0x1.af632a0f7e2cep-26};
constexpr float kExp32[] = {0x1.000002p+0f, 1.0f,           0x1.fffd06p-2f,
                            0x1.55547cp-3f, 0x1.576470p-5f, 0x1.123e1cp-7f};

// (e^d - 1 - d) / d² = 1/2! + d/3! + …: with ten terms the next is below 1e-17 for |d| <=
// kSmallDifference.
constexpr double kSmallDifference = 0x1p-4;
constexpr int kExpm1Terms = 10;
constexpr double kExpm1[kExpm1Terms] = {1.0 / 2,       1.0 / 6,       1.0 / 24,    1.0 / 120,
                                        1.0 / 720,     1.0 / 5040,    1.0 / 40320, 1.0 / 362880,
                                        1.0 / 3628800, 1.0 / 39916800};

// Below this e^x is no longer a normal double; such weights are dropped, they are below 1e-307 of
// the largest.
constexpr double kMinExponent64 = -708.0;
constexpr int kMinExponent32 = -126;

// (e^d - 1 - d) / d² in float32: Taylor's terms for |d| <= kTinyDifference, interpolated at
// Chebyshev nodes for |d| <= 1/8 and |d| <= 1; relative errors 7e-8, 1.2e-7 and 1.2e-7.
constexpr float kTinyDifference = 0x1p-6f;
constexpr float kTinyExcess[] = {0.5f, 1.0f / 6, 1.0f / 24};
constexpr float kEighth = 0.125f;
constexpr float kEighthExcess[] = {0x1.fffffep-2f, 0x1.555554p-3f, 0x1.5582dcp-5f, 0x1.112b14p-7f};
constexpr float kExcess[] = {0.5f,           0x1.55557ep-3f,  0x1.555566p-5f,
                             0x1.10fc8ap-7f, 0x1.6c0660p-10f, 0x1.aa54b6p-13f,
                             0x1.a84500p-16f};

// Beyond these the range reduction of float32 loses too much, or weights leave its range.
constexpr double kMaxValue32 = 0x1p15;
constexpr double kMaxGap32 = 40;
// Up to this e^x is a normal number whatever the reference is.
constexpr double kNarrowValue = 40;

// Of the average excess of a block: up to eight roundings of 2^-24 in each term.
constexpr double kSumError = 5e-7;
// Half of what is allowed is for the sums, the rest for the weights and for what blocks share.
constexpr double kMostExcess = 5e-6 / kSumError;
constexpr double kSmallExcess = 5e-13 / kSumError;

}  // namespace ait::metrics
#endif

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

// e^x for x <= 0, 0 below kMinExponent64.
HWY_INLINE V64 exp(V64 x) {
  const F64 d;
  const hn::RebindToSigned<F64> di;
  const V64 n = hn::Round(hn::Mul(x, hn::Set(d, kLog2E)));
  V64 r = hn::NegMulAdd(n, hn::Set(d, kLn2), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  V64 p = hn::Set(d, kExp64[11]);
  for (int k = 10; k >= 0; --k) p = hn::MulAdd(p, r, hn::Set(d, kExp64[k]));
  // Adding 1.5·2^52 leaves the integer n in the low bits: a shift makes it an exponent.
  const V64 magic = hn::Set(d, 0x1.8p52);
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(di, hn::Add(n, magic)));
  const V64 scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, kMinExponent64)), scaled);
}

// Where no difference is larger than kSmallDifference, one exponential serves both sides: with d =
// m - g, e^m = e^g (1 + d + d² q(d)).
void kl_small_f64(const double* golden, const double* actual, size_t elements, double max_g,
                  KlSums& out) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  V64 z = hn::Zero(d), zd = z, ze = z;
  const V64 shift = hn::Set(d, max_g);
  HWY_ALIGN double last[2][HWY_MAX_BYTES / sizeof(double)];
  for (size_t i = 0; i < elements; i += lanes) {
    const double* at_g = golden + i;
    const double* at_m = actual + i;
    const size_t rest = elements - i;
    V64 present = hn::Set(d, 1.0);
    if (rest < lanes) {  // the padding repeats the first element of the vector, with weight 0
      for (size_t k = 0; k < lanes; ++k) {
        last[0][k] = at_g[k < rest ? k : 0];
        last[1][k] = at_m[k < rest ? k : 0];
      }
      at_g = last[0];
      at_m = last[1];
      present = hn::IfThenElseZero(hn::FirstN(d, rest), present);
    }
    const V64 g = hn::LoadU(d, at_g);
    const V64 e = hn::Sub(hn::LoadU(d, at_m), g);
    const V64 w = hn::Mul(present, exp(hn::Sub(g, shift)));
    V64 q = hn::Set(d, kExpm1[kExpm1Terms - 1]);
    for (int k = kExpm1Terms - 2; k >= 0; --k) q = hn::MulAdd(q, e, hn::Set(d, kExpm1[k]));
    const V64 we = hn::Mul(w, e);
    z = hn::Add(z, w);
    zd = hn::Add(zd, we);
    ze = hn::MulAdd(hn::Mul(we, e), q, ze);
  }
  const double weights = total(z);
  const double differences = total(zd);
  out = {max_g, max_g, weights, weights + differences + total(ze), differences};
}

void kl_f64(const double* golden, const double* actual, size_t elements, KlSums& out) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  V64 high_g = hn::Set(d, -kInfinity);
  V64 high_m = high_g;
  V64 high_d = hn::Zero(d);
  size_t whole = 0;
  for (; whole + lanes <= elements; whole += lanes) {
    const V64 g = hn::LoadU(d, golden + whole);
    const V64 m = hn::LoadU(d, actual + whole);
    high_g = hn::Max(high_g, g);
    high_m = hn::Max(high_m, m);
    high_d = hn::Max(high_d, hn::Abs(hn::Sub(m, g)));
  }
  double max_g = largest(d, high_g);
  double max_m = largest(d, high_m);
  double max_d = largest(d, high_d);
  for (; whole < elements; ++whole) {
    max_g = std::max(max_g, golden[whole]);
    max_m = std::max(max_m, actual[whole]);
    max_d = std::max(max_d, std::fabs(actual[whole] - golden[whole]));
  }
  if (max_d <= kSmallDifference) return kl_small_f64(golden, actual, elements, max_g, out);
  V64 z = hn::Zero(d);
  V64 zm = z;
  V64 zd = z;
  const V64 shift_g = hn::Set(d, max_g);
  const V64 shift_m = hn::Set(d, max_m);
  HWY_ALIGN double last[2][HWY_MAX_BYTES / sizeof(double)];
  for (size_t i = 0; i < elements; i += lanes) {
    const double* at_g = golden + i;
    const double* at_m = actual + i;
    const size_t rest = elements - i;
    if (rest < lanes) {  // pad with -infinity on both sides: weight 0
      std::fill_n(last[0], lanes, -kInfinity);
      std::fill_n(last[1], lanes, -kInfinity);
      std::copy_n(at_g, rest, last[0]);
      std::copy_n(at_m, rest, last[1]);
      at_g = last[0];
      at_m = last[1];
    }
    const V64 g = hn::LoadU(d, at_g);
    const V64 m = hn::LoadU(d, at_m);
    const V64 x = hn::Sub(g, shift_g);
    const V64 y = hn::Sub(m, shift_m);
    const V64 w = exp(x);
    z = hn::Add(z, w);
    zm = hn::Add(zm, exp(y));
    // A weight of 0 silences its difference even where that overflowed.
    const auto live = hn::Gt(w, hn::Zero(d));
    zd = hn::Add(zd, hn::IfThenElseZero(live, hn::Mul(w, hn::Sub(y, x))));
  }
  out = {max_g, max_m, total(z), total(zm), total(zd)};
}

struct Kl32 {
  VFull weights, differences, excess;
};

template <size_t kTerms>
HWY_INLINE VFull polynomial(const float (&coefficients)[kTerms], VFull x) {
  const Full d;
  VFull p = hn::Set(d, coefficients[kTerms - 1]);
  for (size_t k = kTerms - 1; k-- > 0;) p = hn::MulAdd(p, x, hn::Set(d, coefficients[k]));
  return p;
}

// e^x relative to 2^reference, 0 where that is no normal number. `magic` is 1.5·2^23 minus the
// reference: the low bits of its sum with x·log2(e) are the exponent. Of narrow values all are
// normal, and what ln 2 lacks in float32 is below 1.2e-7.
template <bool kNarrow>
HWY_INLINE VFull exp32(VFull x, VFull magic, VFull least) {
  const Full d;
  const hn::RebindToSigned<Full> di;
  const VFull shifted = hn::MulAdd(x, hn::Set(d, static_cast<float>(kLog2E)), magic);
  const VFull n = hn::Sub(shifted, magic);
  VFull r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e43p-1f), x);
  if constexpr (!kNarrow) r = hn::MulAdd(n, hn::Set(d, 0x1.05c61p-29f), r);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const VFull scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, polynomial(kExp32, r)), exponent));
  return kNarrow ? scaled : hn::IfThenElseZero(hn::Gt(shifted, least), scaled);
}

// What bounds the differences of a block. With the first two its values are narrow.
enum class Apart : uint8_t { kTiny, kEighth, kOne, kFar };

template <Apart kApart, bool kCentred>
HWY_INLINE void add_kl(VFull g, VFull m, VFull centre, VFull magic, VFull least, Kl32& sums) {
  const Full d;
  const VFull w = exp32 < kApart == Apart::kTiny || kApart == Apart::kEighth > (g, magic, least);
  VFull e = hn::Sub(m, g);
  if (kCentred) e = hn::Sub(e, centre);
  const VFull we = hn::Mul(w, e);
  sums.weights = hn::Add(sums.weights, w);
  sums.differences = hn::Add(sums.differences, we);
  if constexpr (kApart == Apart::kTiny) {
    sums.excess = hn::MulAdd(hn::Mul(we, e), polynomial(kTinyExcess, e), sums.excess);
  } else if constexpr (kApart == Apart::kEighth) {
    sums.excess = hn::MulAdd(hn::Mul(we, e), polynomial(kEighthExcess, e), sums.excess);
  } else if constexpr (kApart == Apart::kOne) {
    sums.excess = hn::MulAdd(hn::Mul(we, e), polynomial(kExcess, e), sums.excess);
  } else {  // the centre is 0
    const auto near = hn::Le(hn::Abs(e), hn::Set(d, 1.0f));
    const VFull far = hn::Sub(hn::Sub(exp32<false>(m, magic, least), w), we);
    const VFull inner = hn::Mul(hn::Mul(we, e), polynomial(kExcess, e));
    sums.excess = hn::Add(sums.excess, hn::IfThenElse(near, inner, far));
  }
}

// What the float32 loop leaves over, widened and done in double.
template <class LoadG, class LoadM>
KlSums kl_rest(const uint8_t* golden, const uint8_t* actual, size_t elements) {
  double g[kBlockElements];
  double m[kBlockElements];
  widen<LoadG>(golden, elements, g);
  widen<LoadM>(actual, elements, m);
  KlSums sums;
  kl_f64(g, m, elements, sums);
  return sums;
}

HWY_INLINE V64 plus_halves(V64 sum, VFull v) {
  const F64 d;
  const V64 low = hn::PromoteTo(d, hn::LowerHalf(F32(), v));
  return hn::Add(sum, hn::Add(low, hn::PromoteTo(d, hn::UpperHalf(F32(), v))));
}

// The sums of all whole steps, with `centre` taken out of every difference. False where they are
// not good enough; `average` is then what to take out.
template <Apart kApart, bool kCentred, class LoadG, class LoadM>
bool kl_steps(const uint8_t* golden, const uint8_t* actual, size_t elements, double reference,
              float centre, KlSums& out, double& average) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const VFull centres = hn::Set(d, centre);
  const VFull magic = hn::Set(d, static_cast<float>(0x1.8p23 - reference));
  const VFull least = hn::Set(d, static_cast<float>(0x1.8p23 + kMinExponent32));
  V64 z = hn::Zero(F64());
  V64 zd = z;
  V64 ze = z;
  // Four vectors add up in float32 before they go to double: two roundings more, a quarter of the
  // conversions.
  for (size_t i = 0; i < elements; i += 4 * lanes) {
    const uint8_t* at_g = golden + i * LoadG::kBytes;
    const uint8_t* at_m = actual + i * LoadM::kBytes;
    // The next block is loaded meanwhile.
    ahead(at_g, 4 * lanes * LoadG::kBytes, kBlockElements * LoadG::kBytes);
    ahead(at_m, 4 * lanes * LoadM::kBytes, kBlockElements * LoadM::kBytes);
    const VFull none = hn::Zero(d);
    Kl32 sums = {none, none, none};
    for (size_t k = 0; k < 4; k += 2) {
      constexpr bool kSameType = std::is_same_v<LoadG, LoadM>;
      const uint8_t* g = at_g + k * lanes * LoadG::kBytes;
      const uint8_t* m = at_m + k * lanes * LoadM::kBytes;
      add_kl<kApart, kCentred>(load_first<LoadG, kSameType>(g), load_first<LoadM, kSameType>(m),
                               centres, magic, least, sums);
      add_kl<kApart, kCentred>(load_second<LoadG, kSameType>(g), load_second<LoadM, kSameType>(m),
                               centres, magic, least, sums);
    }
    z = plus_halves(z, sums.weights);
    zd = plus_halves(zd, sums.differences);
    ze = plus_halves(ze, sums.excess);
  }
  const double weights = total(z);
  const double differences = total(zd);
  const double excess = total(ze);
  const double shift = reference * kLn2;
  out = {shift, shift + static_cast<double>(centre), weights, weights + differences + excess,
         differences};
  average = differences / weights + static_cast<double>(centre);
  return excess <= (kMostExcess * std::min(out.divergence(), 1.0) + kSmallExcess) *
                       std::min(out.actual_weights, weights);
}

template <Apart kApart, class LoadG, class LoadM>
bool kl_with_or_without_centre(const uint8_t* golden, const uint8_t* actual, size_t elements,
                               double reference, KlSums& out) {
  double average = 0;
  if (kl_steps<kApart, false, LoadG, LoadM>(golden, actual, elements, reference, 0, out, average))
    return true;
  if (kApart == Apart::kFar || !(std::fabs(average) <= 1)) return false;
  return kl_steps<Apart::kOne, true, LoadG, LoadM>(golden, actual, elements, reference,
                                                   static_cast<float>(average), out, average);
}

template <class LoadG, class LoadM>
bool kl_block_f32(const uint8_t* golden, const uint8_t* actual, size_t elements,
                  const PairBlock& block, KlSums& out) {
  const size_t step = 4 * hn::Lanes(Full());
  const size_t whole = elements - elements % step;
  // Without fused multiply-add the float32 range reduction would lose too much.
  if (!HWY_NATIVE_FMA || whole == 0) return false;
  const double low = std::min(block.golden.minimum, block.actual.minimum);
  const double high = std::max(block.golden.maximum, block.actual.maximum);
  if (low < -kMaxValue32 || high > kMaxValue32) return false;
  const double reference = std::nearbyint(block.golden.maximum * kLog2E);
  bool good = false;
  const bool narrow = low >= -kNarrowValue && high <= kNarrowValue;
  if (narrow && block.max_absolute <= static_cast<double>(kTinyDifference)) {
    good = kl_with_or_without_centre<Apart::kTiny, LoadG, LoadM>(golden, actual, whole, reference,
                                                                 out);
  } else if (narrow && block.max_absolute <= static_cast<double>(kEighth)) {
    good = kl_with_or_without_centre<Apart::kEighth, LoadG, LoadM>(golden, actual, whole, reference,
                                                                   out);
  } else if (block.max_absolute <= 0.5) {  // a centre may be as large again
    good =
        kl_with_or_without_centre<Apart::kOne, LoadG, LoadM>(golden, actual, whole, reference, out);
  } else if (std::fabs(block.golden.maximum - block.actual.maximum) <= kMaxGap32) {
    good =
        kl_with_or_without_centre<Apart::kFar, LoadG, LoadM>(golden, actual, whole, reference, out);
  }
  if (good && whole < elements)
    out.add(kl_rest<LoadG, LoadM>(golden + whole * LoadG::kBytes, actual + whole * LoadM::kBytes,
                                  elements - whole));
  return good;
}

bool kl_f32(DType golden_type, const uint8_t* golden, DType actual_type, const uint8_t* actual,
            size_t elements, const PairBlock& block, KlSums& out) {
  bool good = false;
  with_loader(golden_type, [&](auto load_g) {
    with_loader(actual_type, [&](auto load_m) {
      good = kl_block_f32<decltype(load_g), decltype(load_m)>(golden, actual, elements, block, out);
    });
  });
  return good;
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(kl_f64);
HWY_EXPORT(kl_f32);

void kl_block_f64(const double* golden, const double* actual, size_t elements, KlSums& out) {
  HWY_DYNAMIC_DISPATCH(kl_f64)(golden, actual, elements, out);
}

bool kl_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                  size_t elements, const PairBlock& block, KlSums& out) {
  return HWY_DYNAMIC_DISPATCH(kl_f32)(golden_type, static_cast<const uint8_t*>(golden), actual_type,
                                      static_cast<const uint8_t*>(actual), elements, block, out);
}

}  // namespace ait::metrics
#endif
