// The vector kernels, one call per block. Each is compiled for every instruction set and chosen at
// run time. All take plain (row-major, native) data; alignment does not matter. Internal to this
// library.
#pragma once

#include <array>
#include <cstddef>

#include "metrics/block.h"
#include "metrics/sketch.h"

namespace ait::metrics {

// Asks pair_block_f32 for the squares of each row, or part of a row, in the block.
struct RowCuts {
  static constexpr size_t kMost = kBlockElements / 8 + 1;  // a round is 8 elements at least

  size_t first_elements = 0;  // of the row that the block begins in
  size_t row_elements = 0;    // of all others
  bool done = false;          // false: rows do not end where rounds of the kernel do
  double dd[kMost];
  double gg[kMost];
};

// Fast path of the default request: any two of the types with has_fast_kernel(). `max_relative` is
// the largest relative error of the blocks before; only a larger one costs a division. Where a
// value is not finite or beyond 2^100 the result's gg or mm says so (see is_clean) and the block
// must go to pair_block_f64. `rows` may be null.
void pair_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                    size_t elements, double max_relative, PairBlock& out, RowCuts* rows);
inline bool is_clean(const PairBlock& block) {
  constexpr double kLimit = 0x1p200;
  return block.gg < kLimit && block.mm < kLimit;  // false for NaN
}

// Every definition of relative error, thresholds and masks, on finite doubles. `difference` holds
// m - g where that is not simply the rounded difference (64-bit integers), else null.
void pair_block_f64(const double* golden, const double* actual, const double* difference,
                    size_t elements, const Request& request, const Scales& scales, PairBlock& out);

// KL sums of finite doubles.
void kl_block_f64(const double* golden, const double* actual, size_t elements, KlSums& out);

// The same in float32 lanes for types with has_fast_kernel(): right to 1e-5 of the divergence and
// 1e-12. `block` is what pair_block_f32 found. False where that precision cannot be had; then
// kl_block_f64 must do it.
bool kl_block_f32(DType golden_type, const void* golden, DType actual_type, const void* actual,
                  size_t elements, const PairBlock& block, KlSums& out);

// Sums of products for the cosine of a row or a part of one.
void row_block(const double* golden, const double* actual, size_t elements, RowSums& out);

// Sum, squares, magnitudes, extremes. As with pairs, a block that is not clean must go to
// statistics_block_f64.
void statistics_block_f32(DType type, const void* data, size_t elements, SideBlock& out);
inline bool is_clean(const SideBlock& block) { return block.squares < kInfinity; }
void statistics_block_f64(const double* data, size_t elements, double scale, SideBlock& out);

// Sums of a sketch; what has been turned beyond the last bucket of a part is in the second half.
using ProjectionSums = std::array<std::array<double, 2 * Sketch::kBuckets>, Sketch::kParts>;
// Of `lines` times Sketch::kBuckets elements; the first line of the tensor has the number 0.
void add_projections(const double* values, size_t first_line, size_t lines, ProjectionSums& sums);

// Widens the types with has_fast_kernel() to double. `out` has room for a whole block.
void widen_block(DType dtype, const void* data, size_t elements, double* out);

// Widens real elements to double; (u)int64 beyond 2^53 round to nearest.
void decode_f64(DType dtype, const void* data, size_t elements, double* out);

// m - g of integer types, rounded once: two integers that decode_f64 rounds to the same double
// still differ. Needed where one is of 64 bits.
bool needs_integer_differences(DType golden, DType actual);
void integer_differences(DType golden_type, const void* golden, DType actual_type,
                         const void* actual, size_t elements, double* out);

}  // namespace ait::metrics
