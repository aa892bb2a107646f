// Loading stored elements as float32 lanes, for the kernels of every instruction set. Included once
// per target by each kernel file; Highway's own include guard idiom.
#if defined(AIT_METRICS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AIT_METRICS_LANES_INL_H_
#undef AIT_METRICS_LANES_INL_H_
#else
#define AIT_METRICS_LANES_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32 = hn::Rebind<float, F64>;
using V32 = hn::Vec<F32>;
using V64 = hn::Vec<F64>;

// Each loader reads Lanes(F32) elements of its stored type. Casting to the lane type does not
// dereference: all loads are unaligned.
struct LoadFloat32 {
  static constexpr size_t kBytes = 4;
  HWY_INLINE V32 operator()(F32 d, const uint8_t* at) const {
    return hn::LoadU(d, reinterpret_cast<const float*>(at));
  }
};
struct LoadFloat16 {
  static constexpr size_t kBytes = 2;
  HWY_INLINE V32 operator()(F32 d, const uint8_t* at) const {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
    // Before F16C Highway's own conversion knows no Inf or NaN. The shifted pattern is the value
    // divided by 2^112, subnormals included.
    const hn::Rebind<uint16_t, F32> stored;
    const hn::RebindToUnsigned<F32> du;
    const auto bits = hn::PromoteTo(du, hn::LoadU(stored, reinterpret_cast<const uint16_t*>(at)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
    const auto infinite = hn::Or(magnitude, hn::Set(du, 0x7f800000u));
    const auto finite = hn::Lt(magnitude, hn::Set(du, 0x7c00u << 13));
    return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(finite, scaled, infinite)));
#else
    const hn::Rebind<hwy::float16_t, F32> stored;
    return hn::PromoteTo(d, hn::LoadU(stored, reinterpret_cast<const hwy::float16_t*>(at)));
#endif
  }
};
struct LoadBFloat16 {
  static constexpr size_t kBytes = 2;
  HWY_INLINE V32 operator()(F32 d, const uint8_t* at) const {
    const hn::Rebind<uint16_t, F32> stored;
    const hn::RebindToUnsigned<F32> du;
    const auto wide = hn::PromoteTo(du, hn::LoadU(stored, reinterpret_cast<const uint16_t*>(at)));
    return hn::BitCast(d, hn::ShiftLeft<16>(wide));
  }
};

// Widens `count` stored elements to doubles, the last ones by way of a padded copy. `to` has room
// for whole vectors.
template <class Load>
HWY_INLINE void Widen(const uint8_t* from, size_t count, double* to) {
  const F32 d32;
  const F64 d64;
  const size_t lanes = hn::Lanes(d32);
  uint8_t last[HWY_MAX_BYTES] = {};
  for (size_t i = 0; i < count; i += lanes) {
    const uint8_t* at = from + i * Load::kBytes;
    if (count - i < lanes) {
      __builtin_memcpy(last, at, (count - i) * Load::kBytes);
      at = last;
    }
    hn::StoreU(hn::PromoteTo(d64, Load()(d32, at)), d64, to + i);
  }
}

HWY_INLINE double Total(V64 v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }
template <class D, class V>
HWY_INLINE double Largest(D d, V v) {
  return static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, v)));
}
template <class D, class V>
HWY_INLINE double Smallest(D d, V v) {
  return static_cast<double>(hn::GetLane(hn::MinOfLanes(d, v)));
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
