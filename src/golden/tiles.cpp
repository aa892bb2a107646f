// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "golden/tiles.cpp"
#include <hwy/foreach_target.h>
// Highway's headers come first.
#include <hwy/highway.h>

#include "golden/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace ait::golden::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

// AVX2 and what is below it have 16 registers, the others 32.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr size_t kTileRows = 4;
#else
constexpr size_t kTileRows = 8;
#endif
constexpr size_t kTileVectors = 3;

size_t rows_of_tile() { return kTileRows; }
size_t columns_of_tile() { return kTileVectors * hn::Lanes(D()); }

void add_tile_of(const TileRows& a, const double* HWY_RESTRICT b, size_t depth, bool fresh,
                 double* HWY_RESTRICT out, size_t out_step) {
  const D d;
  const double* HWY_RESTRICT numbers = a.data;
  const size_t lanes = hn::Lanes(d);
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
  V s40 = s00, s41 = s00, s42 = s00, s50 = s00, s51 = s00, s52 = s00;
  V s60 = s00, s61 = s00, s62 = s00, s70 = s00, s71 = s00, s72 = s00;
  for (size_t k = 0; k < depth; ++k) {
    const V b0 = hn::LoadU(d, b);
    const V b1 = hn::LoadU(d, b + lanes);
    const V b2 = hn::LoadU(d, b + 2 * lanes);
    const auto add_row = [&](size_t row, V& s0, V& s1, V& s2) HWY_ATTR {
      const V number = hn::Set(d, numbers[row * a.row_step]);
      s0 = hn::MulAdd(number, b0, s0);
      s1 = hn::MulAdd(number, b1, s1);
      s2 = hn::MulAdd(number, b2, s2);
    };
    add_row(0, s00, s01, s02);
    add_row(1, s10, s11, s12);
    add_row(2, s20, s21, s22);
    add_row(3, s30, s31, s32);
    if constexpr (kTileRows == 8) {
      add_row(4, s40, s41, s42);
      add_row(5, s50, s51, s52);
      add_row(6, s60, s61, s62);
      add_row(7, s70, s71, s72);
    }
    numbers += a.step;
    b += kTileVectors * lanes;
  }
  const auto store_row = [&](size_t row, const V& s0, const V& s1, const V& s2) HWY_ATTR {
    double* place = out + row * out_step;
    if (fresh) {
      hn::StoreU(s0, d, place);
      hn::StoreU(s1, d, place + lanes);
      hn::StoreU(s2, d, place + 2 * lanes);
      return;
    }
    hn::StoreU(hn::Add(hn::LoadU(d, place), s0), d, place);
    hn::StoreU(hn::Add(hn::LoadU(d, place + lanes), s1), d, place + lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, place + 2 * lanes), s2), d, place + 2 * lanes);
  };
  store_row(0, s00, s01, s02);
  store_row(1, s10, s11, s12);
  store_row(2, s20, s21, s22);
  store_row(3, s30, s31, s32);
  if constexpr (kTileRows == 8) {
    store_row(4, s40, s41, s42);
    store_row(5, s50, s51, s52);
    store_row(6, s60, s61, s62);
    store_row(7, s70, s71, s72);
  }
}

double dot_of(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled_of(double factor, const double* HWY_RESTRICT numbers, size_t count,
                   double* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V f = hn::Set(d, factor);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, numbers + i), hn::LoadU(d, out + i)), d, out + i);
  for (; i < count; ++i) out[i] += factor * numbers[i];
}

double square(double number) { return number * number; }

void add_fourth_powers_of(const double* HWY_RESTRICT numbers, size_t count,
                          double* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, numbers + i);
    const V squares = hn::Mul(v, v);
    hn::StoreU(hn::MulAdd(squares, squares, hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < count; ++i) out[i] += square(square(numbers[i]));
}

double sum_fourth_powers_of(const double* HWY_RESTRICT numbers, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V v0 = hn::LoadU(d, numbers + i), v1 = hn::LoadU(d, numbers + i + lanes);
    const V squares0 = hn::Mul(v0, v0), squares1 = hn::Mul(v1, v1);
    s0 = hn::MulAdd(squares0, squares0, s0);
    s1 = hn::MulAdd(squares1, squares1, s1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < count; ++i) sum += square(square(numbers[i]));
  return sum;
}

}  // namespace ait::golden::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::golden {

HWY_EXPORT(add_fourth_powers_of);
HWY_EXPORT(add_scaled_of);
HWY_EXPORT(add_tile_of);
HWY_EXPORT(columns_of_tile);
HWY_EXPORT(dot_of);
HWY_EXPORT(rows_of_tile);
HWY_EXPORT(sum_fourth_powers_of);

size_t tile_rows() { return HWY_DYNAMIC_DISPATCH(rows_of_tile)(); }
size_t tile_columns() { return HWY_DYNAMIC_DISPATCH(columns_of_tile)(); }

void add_tile(const TileRows& a, const double* b, size_t depth, bool fresh, double* out,
              size_t out_step) {
  HWY_DYNAMIC_DISPATCH(add_tile_of)(a, b, depth, fresh, out, out_step);
}

double dot(const double* a, const double* b, size_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_of)(a, b, count);
}

void add_scaled(double factor, const double* numbers, size_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(add_scaled_of)(factor, numbers, count, out);
}

void add_fourth_powers(const double* numbers, size_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(add_fourth_powers_of)(numbers, count, out);
}

double sum_fourth_powers(const double* numbers, size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_fourth_powers_of)(numbers, count);
}

}  // namespace ait::golden
#endif
