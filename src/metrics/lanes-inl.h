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

// Each loader reads Lanes(d) elements of its stored type as float32. Casting to the lane type does
// not dereference: all loads are unaligned.
struct LoadFloat32 {
  static constexpr size_t kBytes = 4;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const uint8_t* at) const {
    return hn::LoadU(d, reinterpret_cast<const float*>(at));
  }
};
struct LoadFloat16 {
  static constexpr size_t kBytes = 2;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const uint8_t* at) const {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
    // Before F16C Highway's own conversion knows no Inf or NaN. The shifted pattern is the value
    // divided by 2^112, subnormals included.
    const hn::Rebind<uint16_t, D> stored;
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::PromoteTo(du, hn::LoadU(stored, reinterpret_cast<const uint16_t*>(at)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
    const auto infinite = hn::Or(magnitude, hn::Set(du, 0x7f800000u));
    const auto finite = hn::Lt(magnitude, hn::Set(du, 0x7c00u << 13));
    return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(finite, scaled, infinite)));
#else
    const hn::Rebind<hwy::float16_t, D> stored;
    return hn::PromoteTo(d, hn::LoadU(stored, reinterpret_cast<const hwy::float16_t*>(at)));
#endif
  }
};
struct LoadBFloat16 {
  static constexpr size_t kBytes = 2;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const uint8_t* at) const {
    const hn::Rebind<uint16_t, D> stored;
    const hn::RebindToUnsigned<D> du;
    const auto wide = hn::PromoteTo(du, hn::LoadU(stored, reinterpret_cast<const uint16_t*>(at)));
    return hn::BitCast(d, hn::ShiftLeft<16>(wide));
  }
};

// Calls `use` with the loader of a type with has_fast_kernel().
template <class Use>
HWY_INLINE void with_loader(DType type, const Use& use) {
  switch (type) {
    case DType::kFloat16:
      return use(LoadFloat16());
    case DType::kBFloat16:
      return use(LoadBFloat16());
    default:
      return use(LoadFloat32());
  }
}

// Widens `count` stored elements to doubles, the last ones by way of a padded copy. `to` has room
// for whole vectors.
template <class Load>
HWY_INLINE void widen(const uint8_t* from, size_t count, double* to) {
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

HWY_INLINE double total(V64 v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }
template <class D, class V>
HWY_INLINE double largest(D d, V v) {
  return static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, v)));
}
template <class D, class V>
HWY_INLINE double smallest(D d, V v) {
  return static_cast<double>(hn::GetLane(hn::MinOfLanes(d, v)));
}

// Asks for the bytes that will be needed soon: the hardware's own look-ahead stops at every page.
HWY_INLINE void ahead(const uint8_t* at, size_t bytes, size_t distance_bytes = 4096) {
  constexpr size_t kCacheLineBytes = 64;
  for (size_t i = 0; i < bytes; i += kCacheLineBytes) __builtin_prefetch(at + distance_bytes + i);
}

// Elements of one round of the loop: four vectors of doubles.
HWY_INLINE size_t round_elements() { return 4 * hn::Lanes(F64()); }

// What the stored bits of a side say. One round of a 16-bit type is one vector of them.
template <class Load>
struct Stored;

// Signed and unsigned order of the bits both put larger magnitudes of one sign first: the largest
// signed value is the maximum if there is a positive one, the largest unsigned value the minimum if
// there is a negative one, and the smallest unsigned value whichever of the two is left. That one is
// looked for at the end, where all elements have the same sign.
template <class Load, uint16_t kMaskBits>
struct Stored16 {
  using U16 = hn::ScalableTag<uint16_t>;
  using I16 = hn::ScalableTag<int16_t>;
  using Bits = hn::Vec<U16>;
  struct Extremes {
    hn::Vec<I16> high;
    Bits high_bits;
  };

  static HWY_INLINE Bits load_round(const uint8_t* at) {
    return hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(at));
  }
  static HWY_INLINE Extremes start() { return {hn::Set(I16(), -32768), hn::Zero(U16())}; }
  static HWY_INLINE void add(Bits v, Extremes& into) {
    into.high = hn::Max(into.high, hn::BitCast(I16(), v));
    into.high_bits = hn::Max(into.high_bits, v);
  }
  static HWY_INLINE bool any_masked(Bits v, Bits w) {
    const U16 d;
    const Bits magnitude = hn::Set(d, 0x7fff);
    const Bits least = hn::Min(hn::And(v, magnitude), hn::And(w, magnitude));
    return !hn::AllTrue(d, hn::Gt(least, hn::Set(d, kMaskBits)));
  }
  static HWY_INLINE bool any_zero(Bits v) {
    const U16 d;
    return !hn::AllFalse(d, hn::Eq(hn::And(v, hn::Set(d, 0x7fff)), hn::Zero(d)));
  }
  static HWY_INLINE size_t count_equal(Bits a, Bits b) {
    return hn::CountTrue(U16(), hn::Eq(a, b));
  }

  static double value(uint16_t bits) {
    double value[HWY_MAX_BYTES / sizeof(double)];
    widen<Load>(reinterpret_cast<const uint8_t*>(&bits), 1, value);
    return value[0];
  }
  // `elements` of whole rounds.
  static void finish(const Extremes& extremes, const uint8_t* data, size_t elements,
                     SideBlock& out) {
    const int16_t top = hn::GetLane(hn::MaxOfLanes(I16(), extremes.high));
    const uint16_t top_bits = hn::GetLane(hn::MaxOfLanes(U16(), extremes.high_bits));
    uint16_t bottom_bits = 0;
    if (top < 0 || top_bits < 0x8000) {
      Bits low = hn::Set(U16(), 0xffff);
      for (size_t i = 0; i < elements; i += hn::Lanes(U16()))
        low = hn::Min(low, load_round(data + 2 * i));
      bottom_bits = hn::GetLane(hn::MinOfLanes(U16(), low));
    }
    out.maximum = value(top >= 0 ? static_cast<uint16_t>(top) : bottom_bits);
    out.minimum = value(top_bits >= 0x8000 ? top_bits : bottom_bits);
  }
};

// 2^-23 is 2 units of 2^-24 in fp16, and a power of two with the biased exponent 104 in bf16.
template <>
struct Stored<LoadFloat16> : Stored16<LoadFloat16, 2> {};
template <>
struct Stored<LoadBFloat16> : Stored16<LoadBFloat16, 104 << 7> {};

template <>
struct Stored<LoadFloat32> {
  using Full = hn::ScalableTag<float>;
  using V = hn::Vec<Full>;
  struct Bits {
    V a, b;
  };
  struct Extremes {
    V low, high;
  };

  static HWY_INLINE Bits load_round(const uint8_t* at) {
    const Full d;
    const auto* values = reinterpret_cast<const float*>(at);
    return {hn::LoadU(d, values), hn::LoadU(d, values + hn::Lanes(d))};
  }
  static HWY_INLINE Extremes start() {
    const V high = hn::Set(Full(), std::numeric_limits<float>::infinity());
    return {high, hn::Neg(high)};
  }
  static HWY_INLINE void add(const Bits& v, Extremes& into) {
    into.low = hn::Min(into.low, hn::Min(v.a, v.b));
    into.high = hn::Max(into.high, hn::Max(v.a, v.b));
  }
  static HWY_INLINE bool any_masked(const Bits& v, const Bits& w) {
    const Full d;
    const V least =
        hn::Min(hn::Min(hn::Abs(v.a), hn::Abs(v.b)), hn::Min(hn::Abs(w.a), hn::Abs(w.b)));
    return !hn::AllTrue(d, hn::Gt(least, hn::Set(d, static_cast<float>(kMaskEpsilon))));
  }
  static HWY_INLINE bool any_zero(const Bits& v) {
    const Full d;
    return !hn::AllFalse(d, hn::Or(hn::Eq(v.a, hn::Zero(d)), hn::Eq(v.b, hn::Zero(d))));
  }
  static HWY_INLINE size_t count_equal(const Bits& x, const Bits& y) {
    const hn::RebindToUnsigned<Full> du;
    return hn::CountTrue(du, hn::Eq(hn::BitCast(du, x.a), hn::BitCast(du, y.a))) +
           hn::CountTrue(du, hn::Eq(hn::BitCast(du, x.b), hn::BitCast(du, y.b)));
  }
  static void finish(const Extremes& extremes, const uint8_t* /*data*/, size_t /*elements*/,
                     SideBlock& out) {
    out.minimum = smallest(Full(), extremes.low);
    out.maximum = largest(Full(), extremes.high);
  }
};

using Full = hn::ScalableTag<float>;
using VFull = hn::Vec<Full>;

// The first or the second half of a round, in its own order, or in one that is the same for all
// rounds of a type: of bfloat16 the odd elements come first, which are float32 values as they lie
// there.
template <class Load, bool kInAnyOrder>
HWY_INLINE VFull load_first(const uint8_t* at) {
  if constexpr (kInAnyOrder && std::is_same_v<Load, LoadBFloat16>) {
    const hn::RebindToUnsigned<Full> du;
    const auto bits = hn::BitCast(du, Stored<Load>::load_round(at));
    return hn::BitCast(Full(), hn::And(bits, hn::Set(du, 0xffff0000u)));
  } else {
    return Load()(Full(), at);
  }
}
template <class Load, bool kInAnyOrder>
HWY_INLINE VFull load_second(const uint8_t* at) {
  if constexpr (kInAnyOrder && std::is_same_v<Load, LoadBFloat16>) {
    const hn::RebindToUnsigned<Full> du;
    const auto bits = hn::BitCast(du, Stored<Load>::load_round(at));
    return hn::BitCast(Full(), hn::ShiftLeft<16>(bits));
  } else {
    return Load()(Full(), at + hn::Lanes(Full()) * Load::kBytes);
  }
}

HWY_INLINE V64 widen_lower(VFull v) { return hn::PromoteTo(F64(), hn::LowerHalf(F32(), v)); }
HWY_INLINE V64 widen_upper(VFull v) { return hn::PromoteTo(F64(), hn::UpperHalf(F32(), v)); }

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
