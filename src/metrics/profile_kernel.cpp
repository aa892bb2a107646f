// Squares of golden and of the difference, summed up by row and by column.
//
// The float32 kernels add up in float32 lanes, at most a few hundred additions each, which leaves
// relative errors below 1e-6 and halves the work of doubles. Squares of float32 values can leave
// its range: sums outside of [kSmallest, kLargest] are not trusted and taken again in double.
#include <cstring>

#include "metrics/profile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/profile_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

#include "metrics/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ait::metrics::HWY_NAMESPACE {

static_assert(kStripRoom >= HWY_MAX_BYTES / sizeof(float));

// What float32 drops of the sum of a block is below 2^-137, and of the sums above it nothing.
constexpr double kSmallest = 0x1p-100;
constexpr double kLargest = 0x1p120;
bool is_sound(double sum) { return sum >= kSmallest && sum <= kLargest; }

// ---- Doubles, of which any may be NaN or infinite.

// The last elements of an array, where they do not fill a vector; NaN does not count.
HWY_INLINE V64 load_rest(const double* at, size_t count) {
  const F64 d;
  HWY_ALIGN double last[HWY_MAX_BYTES / sizeof(double)];
  std::fill_n(last, hn::Lanes(d), std::numeric_limits<double>::quiet_NaN());
  std::copy_n(at, count, last);
  return hn::Load(d, last);
}

// No default member initialisers, see pair_kernel.cpp.
struct Pair64 {
  V64 g, e;  // scaled; 0 where either side is not finite
  hn::Mask<F64> finite, flushed;
};

// The first `count` of `values`, a vector at most.
HWY_INLINE Pair64 load_pair(const Doubles& values, size_t count, const Scales& scales) {
  const F64 d;
  const bool is_full = count >= hn::Lanes(d);
  const V64 zero = hn::Zero(d);
  const V64 g = is_full ? hn::LoadU(d, values.golden) : load_rest(values.golden, count);
  const V64 m = is_full ? hn::LoadU(d, values.actual) : load_rest(values.actual, count);
  V64 e = hn::Sub(m, g);
  if (values.difference != nullptr)
    e = is_full ? hn::LoadU(d, values.difference) : load_rest(values.difference, count);
  const auto finite = hn::And(hn::IsFinite(g), hn::IsFinite(m));
  return {hn::IfThenElseZero(finite, hn::Mul(g, hn::Set(d, scales.golden))),
          hn::IfThenElseZero(finite, hn::Mul(e, hn::Set(d, scales.difference))), finite,
          hn::And(finite, hn::And(hn::Eq(m, zero), hn::Ne(g, zero)))};
}

HWY_INLINE RowSum row_of_doubles(const Doubles& values, size_t elements, const Scales& scales,
                                 size_t& flushed) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  V64 dd = hn::Zero(d);
  V64 gg = dd;
  size_t finite = 0;
  for (size_t i = 0; i < elements; i += lanes) {
    const Pair64 pair = load_pair(values.from(i), elements - i, scales);
    dd = hn::MulAdd(pair.e, pair.e, dd);
    gg = hn::MulAdd(pair.g, pair.g, gg);
    finite += hn::CountTrue(d, pair.finite);
    flushed += hn::CountTrue(d, pair.flushed);
  }
  return finite > 0 ? RowSum{total(dd), total(gg)} : RowSum{};
}

// One by one, where a vector would be filled with copies.
RowSum short_row_of_doubles(const Doubles& values, size_t elements, const Scales& scales,
                            size_t& flushed) {
  RowSum sum;
  for (size_t i = 0; i < elements; ++i) {
    const double g = values.golden[i];
    const double m = values.actual[i];
    if (!std::isfinite(g) || !std::isfinite(m)) continue;
    const double e =
        (values.difference != nullptr ? values.difference[i] : m - g) * scales.difference;
    sum.add({e * e, g * scales.golden * (g * scales.golden)});
    flushed += m == 0 && g != 0 ? 1 : 0;
  }
  return sum;
}

void rows_f64(const Doubles& values, size_t rows, size_t row_elements, const Scales& scales,
              double* dd, double* gg, size_t& flushed) {
  const bool is_short = row_elements < hn::Lanes(F64());
  for (size_t row = 0; row < rows; ++row) {
    const Doubles at = values.from(row * row_elements);
    const RowSum sum = is_short ? short_row_of_doubles(at, row_elements, scales, flushed)
                                : row_of_doubles(at, row_elements, scales, flushed);
    dd[row] = sum.dd;
    gg[row] = sum.gg;
  }
}

void columns_f64(const Doubles& values, size_t columns, const Scales& scales, double* dd,
                 double* gg) {
  const F64 d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < columns; i += lanes) {
    const Pair64 pair = load_pair(values.from(i), columns - i, scales);
    hn::StoreU(hn::MulAdd(pair.e, pair.e, hn::LoadU(d, dd + i)), d, dd + i);
    hn::StoreU(hn::MulAdd(pair.g, pair.g, hn::LoadU(d, gg + i)), d, gg + i);
  }
}

// ---- Stored float16, bfloat16 and float32, all of them finite.

// The elements that are left at the end of memory that may be read, 0 after them.
template <class Load>
HWY_INLINE VFull load_last(const uint8_t* at, size_t count) {
  uint8_t last[HWY_MAX_BYTES] = {};
  __builtin_memcpy(last, at, count * Load::kBytes);
  return Load()(Full(), last);
}

struct Squares {
  VFull dd, gg;
};

HWY_INLINE void add_squares(VFull g, VFull m, Squares& sums) {
  const VFull e = hn::Sub(m, g);
  sums.dd = hn::MulAdd(e, e, sums.dd);
  sums.gg = hn::MulAdd(g, g, sums.gg);
}

template <class LoadG, class LoadM>
HWY_NOINLINE RowSum row_in_double(const uint8_t* golden, const uint8_t* actual, size_t elements) {
  constexpr size_t kStretch = 512;
  double g[kStretch];
  double m[kStretch];
  RowSum sum;
  size_t flushed = 0;  // has been counted
  for (size_t i = 0; i < elements; i += kStretch) {
    const size_t count = std::min(kStretch, elements - i);
    widen<LoadG>(golden + i * LoadG::kBytes, count, g);
    widen<LoadM>(actual + i * LoadM::kBytes, count, m);
    sum.add(row_of_doubles({g, m, nullptr}, count, Scales(), flushed));
  }
  return sum;
}

template <class LoadG, class LoadM>
HWY_INLINE size_t flushed_in(const uint8_t* golden, const uint8_t* actual, size_t elements) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const VFull zero = hn::Zero(d);
  size_t found = 0;
  for (size_t i = 0; i < elements; i += lanes) {
    const uint8_t* at_g = golden + i * LoadG::kBytes;
    const uint8_t* at_m = actual + i * LoadM::kBytes;
    const size_t count = elements - i;
    const VFull g = count >= lanes ? LoadG()(d, at_g) : load_last<LoadG>(at_g, count);
    const VFull m = count >= lanes ? LoadM()(d, at_m) : load_last<LoadM>(at_m, count);
    found += hn::CountTrue(d, hn::And(hn::Eq(m, zero), hn::Ne(g, zero)));
  }
  return found;
}

// Few values are 0, which their stored bits tell, many at a time.
template <class LoadG, class LoadM>
size_t flushed_of(const uint8_t* golden, const uint8_t* actual, size_t elements) {
  const size_t round = round_elements();
  size_t found = 0;
  size_t i = 0;
  for (; i + round <= elements; i += round) {
    const uint8_t* at_m = actual + i * LoadM::kBytes;
    if (HWY_UNLIKELY(Stored<LoadM>::any_zero(Stored<LoadM>::load_round(at_m))))
      found += flushed_in<LoadG, LoadM>(golden + i * LoadG::kBytes, at_m, round);
  }
  return found + flushed_in<LoadG, LoadM>(golden + i * LoadG::kBytes, actual + i * LoadM::kBytes,
                                          elements - i);
}

// Quicker than doubles where nothing differs, be it that a few rows of many do.
template <class LoadG, class LoadM>
bool same_bytes(const uint8_t* golden, const uint8_t* actual, size_t elements) {
  return std::is_same_v<LoadG, LoadM> && std::memcmp(golden, actual, elements * LoadG::kBytes) == 0;
}

template <class LoadG, class LoadM>
void rows_of(const uint8_t* golden, const uint8_t* actual, size_t rows, size_t row_elements,
             double* dd, double* gg) {
  const Full d;
  const LoadG load_g;
  const LoadM load_m;
  const size_t lanes = hn::Lanes(d);
  const size_t end = rows * row_elements;
  const VFull zero = hn::Zero(d);
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = row * row_elements;
    Squares even = {zero, zero};
    Squares odd = even;
    size_t i = 0;
    for (; i + 2 * lanes <= row_elements; i += 2 * lanes) {
      const uint8_t* at_g = golden + (first + i) * LoadG::kBytes;
      const uint8_t* at_m = actual + (first + i) * LoadM::kBytes;
      const VFull g0 = load_g(d, at_g);
      const VFull m0 = load_m(d, at_m);
      const VFull g1 = load_g(d, at_g + lanes * LoadG::kBytes);
      const VFull m1 = load_m(d, at_m + lanes * LoadM::kBytes);
      add_squares(g0, m0, even);
      add_squares(g1, m1, odd);
    }
    for (; i < row_elements; i += lanes) {
      const uint8_t* at_g = golden + (first + i) * LoadG::kBytes;
      const uint8_t* at_m = actual + (first + i) * LoadM::kBytes;
      const bool is_last = first + i + lanes > end;
      const auto present = hn::FirstN(d, row_elements - i);
      const VFull g = hn::IfThenElseZero(
          present, is_last ? load_last<LoadG>(at_g, row_elements - i) : load_g(d, at_g));
      const VFull m = hn::IfThenElseZero(
          present, is_last ? load_last<LoadM>(at_m, row_elements - i) : load_m(d, at_m));
      add_squares(g, m, even);
    }
    dd[row] = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(even.dd, odd.dd))));
    gg[row] = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(even.gg, odd.gg))));
  }
  for (size_t row = 0; row < rows; ++row) {
    if (HWY_LIKELY(is_sound(dd[row]) && is_sound(gg[row]))) continue;
    const uint8_t* at_g = golden + row * row_elements * LoadG::kBytes;
    const uint8_t* at_m = actual + row * row_elements * LoadM::kBytes;
    if (dd[row] == 0 && is_sound(gg[row]) && same_bytes<LoadG, LoadM>(at_g, at_m, row_elements))
      continue;
    const RowSum sum = row_in_double<LoadG, LoadM>(at_g, at_m, row_elements);
    dd[row] = sum.dd;
    gg[row] = sum.gg;
  }
}

void rows_f32(DType golden_type, const uint8_t* golden, DType actual_type, const uint8_t* actual,
              size_t rows, size_t row_elements, double* dd, double* gg) {
  with_loader(golden_type, [&](auto load_g) HWY_ATTR {
    with_loader(actual_type, [&](auto load_m) HWY_ATTR {
      rows_of<decltype(load_g), decltype(load_m)>(golden, actual, rows, row_elements, dd, gg);
    });
  });
}

size_t flushed_f32(DType golden_type, const uint8_t* golden, DType actual_type,
                   const uint8_t* actual, size_t elements) {
  size_t found = 0;
  with_loader(golden_type, [&](auto load_g) HWY_ATTR {
    with_loader(actual_type, [&](auto load_m) HWY_ATTR {
      found = flushed_of<decltype(load_g), decltype(load_m)>(golden, actual, elements);
    });
  });
  return found;
}

// The sums of kRows rows at a time are loaded and stored once for all of these.
template <class LoadG, class LoadM, size_t kRows>
HWY_INLINE void add_columns(const void* const* golden, const void* const* actual, size_t columns,
                            float* dd, float* gg) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto at = [](const void* row, size_t bytes) {
    return static_cast<const uint8_t*>(row) + bytes;
  };
  for (size_t i = 0; i < columns; i += lanes) {
    const size_t count = columns - i;
    Squares sums = {hn::LoadU(d, dd + i), hn::LoadU(d, gg + i)};
    for (size_t row = 0; row < kRows; ++row) {
      const uint8_t* at_g = at(golden[row], i * LoadG::kBytes);
      const uint8_t* at_m = at(actual[row], i * LoadM::kBytes);
      add_squares(HWY_LIKELY(count >= lanes) ? LoadG()(d, at_g) : load_last<LoadG>(at_g, count),
                  HWY_LIKELY(count >= lanes) ? LoadM()(d, at_m) : load_last<LoadM>(at_m, count),
                  sums);
    }
    hn::StoreU(sums.dd, d, dd + i);
    hn::StoreU(sums.gg, d, gg + i);
  }
}

template <class LoadG, class LoadM>
void columns_of(const void* const* golden, const void* const* actual, size_t rows, size_t columns,
                double* dd, double* gg) {
  constexpr size_t kTogether = 4;
  // Room for a whole vector at the end.
  float sum_d[kStripColumns + kStripRoom];
  float sum_g[kStripColumns + kStripRoom];
  std::fill_n(sum_d, columns + kStripRoom, 0.0f);
  std::fill_n(sum_g, columns + kStripRoom, 0.0f);
  size_t row = 0;
  for (; row + kTogether <= rows; row += kTogether)
    add_columns<LoadG, LoadM, kTogether>(golden + row, actual + row, columns, sum_d, sum_g);
  for (; row < rows; ++row)
    add_columns<LoadG, LoadM, 1>(golden + row, actual + row, columns, sum_d, sum_g);
  const F32 d32;
  const F64 d64;
  for (size_t i = 0; i < columns; i += hn::Lanes(d64)) {
    const V64 more_d = hn::PromoteTo(d64, hn::LoadU(d32, sum_d + i));
    const V64 more_g = hn::PromoteTo(d64, hn::LoadU(d32, sum_g + i));
    hn::StoreU(hn::Add(hn::LoadU(d64, dd + i), more_d), d64, dd + i);
    hn::StoreU(hn::Add(hn::LoadU(d64, gg + i), more_g), d64, gg + i);
  }
}

void columns_f32(DType golden_type, const void* const* golden, DType actual_type,
                 const void* const* actual, size_t rows, size_t columns, double* dd, double* gg) {
  with_loader(golden_type, [&](auto load_g) HWY_ATTR {
    with_loader(actual_type, [&](auto load_m) HWY_ATTR {
      columns_of<decltype(load_g), decltype(load_m)>(golden, actual, rows, columns, dd, gg);
    });
  });
}

}  // namespace ait::metrics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::metrics {

HWY_EXPORT(rows_f32);
HWY_EXPORT(flushed_f32);
HWY_EXPORT(rows_f64);
HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);

void row_sums_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                  size_t rows, size_t row_elements, double* dd, double* gg) {
  HWY_DYNAMIC_DISPATCH(rows_f32)
  (golden_type, static_cast<const uint8_t*>(golden), actual_type,
   static_cast<const uint8_t*>(actual), rows, row_elements, dd, gg);
}

size_t count_flushed(DType golden_type, const void* golden, DType actual_type, const void* actual,
                     size_t elements) {
  return HWY_DYNAMIC_DISPATCH(flushed_f32)(golden_type, static_cast<const uint8_t*>(golden),
                                           actual_type, static_cast<const uint8_t*>(actual),
                                           elements);
}

void row_sums_f64(const Doubles& values, size_t rows, size_t row_elements, const Scales& scales,
                  double* dd, double* gg, size_t& flushed) {
  HWY_DYNAMIC_DISPATCH(rows_f64)(values, rows, row_elements, scales, dd, gg, flushed);
}

void column_sums_f32(DType golden_type, const void* const* golden, DType actual_type,
                     const void* const* actual, size_t rows, size_t columns, double* dd,
                     double* gg) {
  HWY_DYNAMIC_DISPATCH(columns_f32)
  (golden_type, golden, actual_type, actual, rows, columns, dd, gg);
}

void column_sums_f64(const Doubles& values, size_t columns, const Scales& scales, double* dd,
                     double* gg) {
  HWY_DYNAMIC_DISPATCH(columns_f64)(values, columns, scales, dd, gg);
}

}  // namespace ait::metrics
#endif
