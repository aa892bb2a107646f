#include "kernels/simd.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atb::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V32 = hn::Vec<F32>;

// Each loader reads Lanes(F32) elements. Casting to the lane type does not dereference: all loads
// are unaligned.
struct LoadF32 {
  static constexpr size_t kBytes = 4;
  static HWY_INLINE V32 load(const uint8_t* at) {
    return hn::LoadU(F32(), reinterpret_cast<const float*>(at));
  }
};
struct LoadF16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE V32 load(const uint8_t* at) {
    const F32 d;
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
struct LoadBf16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE V32 load(const uint8_t* at) {
    const hn::Rebind<uint16_t, F32> stored;
    const hn::RebindToUnsigned<F32> du;
    const auto wide = hn::PromoteTo(du, hn::LoadU(stored, reinterpret_cast<const uint16_t*>(at)));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(wide));
  }
};

// Calls `body` with the loader of a type.
template <class Body>
HWY_INLINE void with_loader(DataType dtype, const Body& body) {
  switch (dtype) {
    case DataType::kFloat16:
      return body(LoadF16());
    case DataType::kBf16:
      return body(LoadBf16());
    default:
      return body(LoadF32());
  }
}

// The last, incomplete vector, filled up with zeros.
template <class L>
HWY_INLINE V32 load_last(const uint8_t* at, size_t count) {
  uint8_t padded[HWY_MAX_BYTES] = {};
  std::memcpy(padded, at, count * L::kBytes);
  return L::load(padded);
}

template <class L>
void widen_with(const uint8_t* from, size_t count, float* to) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(L::load(from + i * L::kBytes), d, to + i);
  if (i == count) return;
  float last[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(load_last<L>(from + i * L::kBytes, count - i), d, last);
  std::memcpy(to + i, last, (count - i) * sizeof(float));
}

void widen_all(DataType dtype, const void* from, size_t count, float* to) {
  with_loader(dtype, [&](auto loader) {
    widen_with<decltype(loader)>(static_cast<const uint8_t*>(from), count, to);
  });
}

void narrow_all(const float* from, size_t count, DataType dtype, void* to) {
  if (dtype == DataType::kFloat) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  auto* out = static_cast<uint8_t*>(to);
  size_t i = 0;
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  if (dtype == DataType::kFloat16) {
#if !(HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
    const hn::Rebind<hwy::float16_t, F32> stored;
    for (; i + lanes <= count; i += lanes)
      hn::StoreU(hn::DemoteTo(stored, hn::LoadU(d, from + i)), stored,
                 reinterpret_cast<hwy::float16_t*>(out + 2 * i));
#endif
    for (; i < count; ++i) {
      const uint16_t bits = ait::float_to_fp16(from[i]);
      std::memcpy(out + 2 * i, &bits, 2);
    }
    return;
  }
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint16_t, F32> stored;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
    const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
    const auto high = hn::BitCast(hn::RebindToSigned<F32>(), hn::ShiftRight<16>(chosen));
    hn::StoreU(hn::DemoteTo(stored, high), stored, reinterpret_cast<uint16_t*>(out + 2 * i));
  }
  for (; i < count; ++i) {
    const uint16_t bits = ait::float_to_bf16(from[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

HWY_INLINE float total_of(V32 v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }

// A tile of dot products: each vector of x meets each vector of w while both are in registers.
template <size_t kRows, size_t kColumns, class L>
HWY_INLINE void dot_tile(const float* x, const uint8_t* w, size_t k, float* out, size_t stride) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t w_stride = k * L::kBytes;
  V32 sum[kRows][kColumns];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kColumns; ++c) sum[r][c] = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    V32 b[kColumns];
    for (size_t c = 0; c < kColumns; ++c) b[c] = L::load(w + c * w_stride + i * L::kBytes);
    for (size_t r = 0; r < kRows; ++r) {
      const V32 a = hn::LoadU(d, x + r * k + i);
      for (size_t c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(a, b[c], sum[r][c]);
    }
  }
  if (i < k) {
    V32 b[kColumns];
    for (size_t c = 0; c < kColumns; ++c)
      b[c] = load_last<L>(w + c * w_stride + i * L::kBytes, k - i);
    for (size_t r = 0; r < kRows; ++r) {
      const V32 a = load_last<LoadF32>(reinterpret_cast<const uint8_t*>(x + r * k + i), k - i);
      for (size_t c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(a, b[c], sum[r][c]);
    }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kColumns; ++c) out[r * stride + c] = total_of(sum[r][c]);
}

template <size_t kColumns, class L>
HWY_INLINE void dot_columns(const float* x, size_t rows, const uint8_t* w, size_t k, float* out,
                            size_t stride) {
  static_assert(kTileRows == 4);
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) dot_tile<4, kColumns, L>(x + r * k, w, k, out + r * stride, stride);
  for (; r < rows; ++r) dot_tile<1, kColumns, L>(x + r * k, w, k, out + r * stride, stride);
}

template <class L>
void dot_products_with(const float* x, size_t rows, const uint8_t* w, size_t columns, size_t k,
                       float* out, size_t stride) {
  // Stored halves that meet many rows are widened once, not once for each group of rows.
  constexpr bool kNarrow = L::kBytes < sizeof(float);
  std::vector<float> wide;
  if (kNarrow && rows > kTileRows) wide.resize(kTileColumns * k);
  size_t c = 0;
  for (; c + kTileColumns <= columns; c += kTileColumns) {
    const uint8_t* at = w + c * k * L::kBytes;
    if (wide.empty()) {
      dot_columns<kTileColumns, L>(x, rows, at, k, out + c, stride);
    } else {
      widen_with<L>(at, kTileColumns * k, wide.data());
      dot_columns<kTileColumns, LoadF32>(x, rows, reinterpret_cast<const uint8_t*>(wide.data()), k,
                                         out + c, stride);
    }
  }
  for (; c < columns; ++c) dot_columns<1, L>(x, rows, w + c * k * L::kBytes, k, out + c, stride);
}

void dot_products_all(const float* x, size_t rows, DataType dtype, const void* w, size_t columns,
                      size_t k, float* out, size_t stride) {
  with_loader(dtype, [&](auto loader) {
    dot_products_with<decltype(loader)>(x, rows, static_cast<const uint8_t*>(w), columns, k, out,
                                        stride);
  });
}

template <size_t kColumns>
HWY_INLINE void dot_int8_columns(const int8_t* x, const int8_t* w, size_t k, int32_t* out) {
  const hn::ScalableTag<int16_t> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const hn::ScalableTag<int32_t> d32;
  const size_t lanes = hn::Lanes(d16);
  using Sum = hn::Vec<decltype(d32)>;
  Sum sum[kColumns], more[kColumns];
  for (size_t c = 0; c < kColumns; ++c) sum[c] = more[c] = hn::Zero(d32);
  size_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const auto a = hn::PromoteTo(d16, hn::LoadU(d8, x + i));
    for (size_t c = 0; c < kColumns; ++c) {
      const auto b = hn::PromoteTo(d16, hn::LoadU(d8, w + c * k + i));
      sum[c] = hn::ReorderWidenMulAccumulate(d32, a, b, sum[c], more[c]);
    }
  }
  for (size_t c = 0; c < kColumns; ++c) {
    int32_t total = hn::GetLane(hn::SumOfLanes(d32, hn::Add(sum[c], more[c])));
    for (size_t j = i; j < k; ++j) total += int32_t{x[j]} * int32_t{w[c * k + j]};
    out[c] = total;
  }
}

void dot_products_int8_all(const int8_t* x, size_t rows, const int8_t* w, size_t columns, size_t k,
                           int32_t* out, size_t stride) {
  size_t c = 0;
  for (; c + kTileColumns <= columns; c += kTileColumns)
    for (size_t r = 0; r < rows; ++r)
      dot_int8_columns<kTileColumns>(x + r * k, w + c * k, k, out + r * stride + c);
  for (; c < columns; ++c)
    for (size_t r = 0; r < rows; ++r)
      dot_int8_columns<1>(x + r * k, w + c * k, k, out + r * stride + c);
}

void dot_rows_all(const float* q, size_t count, DataType dtype, const void* first,
                  size_t stride_bytes, size_t rows, float* out) {
  with_loader(dtype, [&](auto loader) {
    const auto* at = static_cast<const uint8_t*>(first);
    for (size_t j = 0; j < rows; ++j)
      dot_tile<1, 1, decltype(loader)>(q, at + j * stride_bytes, count, out + j, 1);
  });
}

void add_weighted_rows_all(const float* weight, DataType dtype, const void* first,
                           size_t stride_bytes, size_t rows, size_t count, float* sum) {
  with_loader(dtype, [&](auto loader) {
    using L = decltype(loader);
    const F32 d;
    const size_t lanes = hn::Lanes(d);
    const auto* at = static_cast<const uint8_t*>(first);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      V32 total = hn::LoadU(d, sum + i);
      for (size_t j = 0; j < rows; ++j)
        total = hn::MulAdd(hn::Set(d, weight[j]), L::load(at + j * stride_bytes + i * L::kBytes),
                           total);
      hn::StoreU(total, d, sum + i);
    }
    if (i == count) return;
    V32 total = load_last<LoadF32>(reinterpret_cast<const uint8_t*>(sum + i), count - i);
    for (size_t j = 0; j < rows; ++j)
      total = hn::MulAdd(hn::Set(d, weight[j]),
                         load_last<L>(at + j * stride_bytes + i * L::kBytes, count - i), total);
    float last[HWY_MAX_BYTES / sizeof(float)];
    hn::StoreU(total, d, last);
    std::memcpy(sum + i, last, (count - i) * sizeof(float));
  });
}

// Highway's own gives 0 for NaN and nothing sensible beyond 104.
HWY_INLINE V32 safe_exp(V32 x) {
  const F32 d;
  const auto limit = hn::Set(d, 88.8f);  // e to it exceeds the largest float
  const auto usual = hn::Exp(d, hn::Min(x, limit));
  const auto infinity = hn::Set(d, HUGE_VALF);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, limit), infinity, usual));
}

float exp_and_sum_all(float* x, size_t count, float shift) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, shift);
  V32 sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V32 e = safe_exp(hn::Sub(hn::LoadU(d, x + i), by));
    hn::StoreU(e, d, x + i);
    sum = hn::Add(sum, e);
  }
  float total = total_of(sum);
  if (i < count) {
    float last[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(last, x + i, (count - i) * sizeof(float));
    hn::StoreU(safe_exp(hn::Sub(hn::LoadU(d, last), by)), d, last);
    for (size_t j = i; j < count; ++j) total += x[j] = last[j - i];
  }
  return total;
}

void swish_all(float* x, size_t count, float scale) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto apply = [&](V32 v) {
    const V32 e = safe_exp(hn::Mul(v, hn::Set(d, -scale)));
    return hn::Div(v, hn::Add(hn::Set(d, 1.0f), e));
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(apply(hn::LoadU(d, x + i)), d, x + i);
  if (i == count) return;
  float last[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(last, x + i, (count - i) * sizeof(float));
  hn::StoreU(apply(hn::LoadU(d, last)), d, last);
  std::memcpy(x + i, last, (count - i) * sizeof(float));
}

float sum_of_squares_all(const float* x, size_t count) {
  float out = 0;
  dot_tile<1, 1, LoadF32>(x, reinterpret_cast<const uint8_t*>(x), count, &out, 1);
  return out;
}

}  // namespace atb::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atb::kernels {

HWY_EXPORT(widen_all);
HWY_EXPORT(narrow_all);
HWY_EXPORT(dot_products_all);
HWY_EXPORT(dot_products_int8_all);
HWY_EXPORT(dot_rows_all);
HWY_EXPORT(add_weighted_rows_all);
HWY_EXPORT(exp_and_sum_all);
HWY_EXPORT(swish_all);
HWY_EXPORT(sum_of_squares_all);

void widen(DataType dtype, const void* from, size_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_all)(dtype, from, count, to);
}
void narrow(const float* from, size_t count, DataType dtype, void* to) {
  HWY_DYNAMIC_DISPATCH(narrow_all)(from, count, dtype, to);
}
void dot_products(const float* x, size_t rows, DataType dtype, const void* w, size_t columns,
                  size_t k, float* out, size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(dot_products_all)(x, rows, dtype, w, columns, k, out, out_stride);
}
void dot_products_int8(const int8_t* x, size_t rows, const int8_t* w, size_t columns, size_t k,
                       int32_t* out, size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(dot_products_int8_all)(x, rows, w, columns, k, out, out_stride);
}
void dot_rows(const float* q, size_t count, DataType dtype, const void* first_row,
              size_t stride_bytes, size_t rows, float* out) {
  HWY_DYNAMIC_DISPATCH(dot_rows_all)(q, count, dtype, first_row, stride_bytes, rows, out);
}
void add_weighted_rows(const float* weight, DataType dtype, const void* first_row,
                       size_t stride_bytes, size_t rows, size_t count, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_weighted_rows_all)
  (weight, dtype, first_row, stride_bytes, rows, count, sum);
}
float exp_and_sum(float* x, size_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(exp_and_sum_all)(x, count, shift);
}
void swish(float* x, size_t count, float scale) {
  HWY_DYNAMIC_DISPATCH(swish_all)(x, count, scale);
}
float sum_of_squares(const float* x, size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_all)(x, count);
}

}  // namespace atb::kernels
#endif
