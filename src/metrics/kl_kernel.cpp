// Kullback-Leibler divergence of softmax(golden) from softmax(actual), block by block.
//
// With weights w = e^g and d = m - g:   KL = ln(Σ w e^d / Σ w) - Σ w d / Σ w.
// Blocks carry their sums relative to their own maximum, so one pass over memory is enough.
//
// The float32 kernel takes the weights in float32, where their relative error is about 1e-7. KL
// depends on them only through averages of e^d - 1 - d, so its own relative error is a few
// times that: below 1e-12 absolutely as long as KL is small (is_good_enough in compare.cpp), beyond
// which the double kernel is asked instead.
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

// e^r on |r| <= ln(2)/2, interpolated at Chebyshev nodes: relative error 4e-18 and 2.5e-9.
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
constexpr float kExp32[] = {1.0f,
                            0x1.000000a21653fp+0f,
                            0x1.000000287f871p-1f,
                            0x1.5554041b96acbp-3f,
                            0x1.5554accfdb593p-5f,
                            0x1.126fb8fa71fe6p-7f,
                            0x1.6d7543e4127b8p-10f};

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
  V32 weights, differences, excess;
};

// The sums of one vector: w, w d, and w (e^d - 1 - d).
HWY_INLINE void add_kl(V32 g, V32 m, V32 magic, V32 least, Kl32& sums) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  // `magic` is 1.5·2^23 minus the reference exponent: the sum's low bits are the exponent relative
  // to it.
  const V32 shifted = hn::MulAdd(g, hn::Set(d, static_cast<float>(kLog2E)), magic);
  const V32 n = hn::Sub(shifted, magic);
  V32 r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e43p-1f), g);
  r = hn::MulAdd(n, hn::Set(d, 0x1.05c61p-29f), r);
  V32 p = hn::Set(d, kExp32[6]);
  for (int k = 5; k >= 0; --k) p = hn::MulAdd(p, r, hn::Set(d, kExp32[k]));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const V32 scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  const V32 w = hn::IfThenElseZero(hn::Gt(shifted, least), scaled);

  const V32 e = hn::Sub(m, g);
  V32 q = hn::MulAdd(e, hn::Set(d, 1.0f / 24), hn::Set(d, 1.0f / 6));
  q = hn::MulAdd(q, e, hn::Set(d, 0.5f));
  const V32 we = hn::Mul(w, e);
  sums.weights = hn::Add(sums.weights, w);
  sums.differences = hn::Add(sums.differences, we);
  sums.excess = hn::MulAdd(hn::Mul(we, e), q, sums.excess);
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

template <class LoadG, class LoadM>
void kl_block_f32(const uint8_t* golden, const uint8_t* actual, size_t elements,
                  double golden_maximum, KlSums& out) {
  const F32 d32;
  const F64 d64;
  const size_t lanes = hn::Lanes(d32);
  const double reference = std::nearbyint(golden_maximum * kLog2E);
  const V32 magic = hn::Set(d32, static_cast<float>(0x1.8p23 - reference));
  const V32 least = hn::Set(d32, static_cast<float>(0x1.8p23 + kMinExponent32));
  const LoadG load_g;
  const LoadM load_m;
  V64 z = hn::Zero(d64);
  V64 zd = z;
  V64 ze = z;
  // Four vectors add up in float32 before they go to double: two roundings more, a quarter of the
  // conversions.
  constexpr size_t kUnroll = 4;
  const size_t step = kUnroll * lanes;
  // Without fused multiply-add the float32 range reduction would lose too much.
  const size_t fast = HWY_NATIVE_FMA ? elements - elements % step : 0;
  for (size_t i = 0; i < fast; i += step) {
    const uint8_t* at_g = golden + i * LoadG::kBytes;
    const uint8_t* at_m = actual + i * LoadM::kBytes;
    const V32 none = hn::Zero(d32);
    Kl32 sums = {none, none, none};
    for (size_t k = 0; k < kUnroll; ++k)
      add_kl(load_g(d32, at_g + k * lanes * LoadG::kBytes),
             load_m(d32, at_m + k * lanes * LoadM::kBytes), magic, least, sums);
    z = hn::Add(z, hn::PromoteTo(d64, sums.weights));
    zd = hn::Add(zd, hn::PromoteTo(d64, sums.differences));
    ze = hn::Add(ze, hn::PromoteTo(d64, sums.excess));
  }
  out = {};
  if (fast > 0) {
    const double shift = reference * kLn2;
    const double weights = total(z);
    const double differences = total(zd);
    out = {shift, shift, weights, weights + differences + total(ze), differences};
  }
  if (fast < elements)
    out.add(kl_rest<LoadG, LoadM>(golden + fast * LoadG::kBytes, actual + fast * LoadM::kBytes,
                                  elements - fast));
}

template <class LoadG>
void kl_with_golden(DType actual_type, const uint8_t* golden, const uint8_t* actual,
                    size_t elements, double golden_maximum, KlSums& out) {
  switch (actual_type) {
    case DType::kFloat16:
      return kl_block_f32<LoadG, LoadFloat16>(golden, actual, elements, golden_maximum, out);
    case DType::kBFloat16:
      return kl_block_f32<LoadG, LoadBFloat16>(golden, actual, elements, golden_maximum, out);
    default:
      return kl_block_f32<LoadG, LoadFloat32>(golden, actual, elements, golden_maximum, out);
  }
}

void kl_f32(DType golden_type, const uint8_t* golden, DType actual_type, const uint8_t* actual,
            size_t elements, double golden_maximum, KlSums& out) {
  switch (golden_type) {
    case DType::kFloat16:
      return kl_with_golden<LoadFloat16>(actual_type, golden, actual, elements, golden_maximum,
                                         out);
    case DType::kBFloat16:
      return kl_with_golden<LoadBFloat16>(actual_type, golden, actual, elements, golden_maximum,
                                          out);
    default:
      return kl_with_golden<LoadFloat32>(actual_type, golden, actual, elements, golden_maximum,
                                         out);
  }
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

void kl_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                  size_t elements, double golden_maximum, KlSums& out) {
  HWY_DYNAMIC_DISPATCH(kl_f32)
  (golden_type, static_cast<const uint8_t*>(golden), actual_type,
   static_cast<const uint8_t*>(actual), elements, golden_maximum, out);
}

}  // namespace ait::metrics
#endif
