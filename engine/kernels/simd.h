// The inner loops, vectorised for every instruction set of the machine family and chosen at run
// time.
//
// All arithmetic is fp32; narrowing rounds once, to nearest even, as a device does that computes
// in fp32 and stores fp16 or bf16. Results do not depend on alignment or thread count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "atb/types.h"

namespace atb::kernels {

// Elements of a floating type as fp32, and back with rounding. Addresses need no alignment.
void widen(DataType dtype, const void* from, size_t count, float* to);
void narrow(const float* from, size_t count, DataType dtype, void* to);

// Rows and columns of the register tile that the products work in.
inline constexpr size_t kTileRows = 4;
inline constexpr size_t kTileColumns = 4;

// out[i][j] = sum over k of x[i][k] * w[j][k], with x as fp32 rows and w as rows of `dtype`, both
// `k` long; out is rows x columns, row-major with `out_stride`.
void dot_products(const float* x, size_t rows, DataType dtype, const void* w, size_t columns,
                  size_t k, float* out, size_t out_stride);

// The same on int8 with exact int32 sums; k must be at most kMaxInt8K.
inline constexpr size_t kMaxInt8K = (size_t{1} << 31) / (size_t{128} * 128) - 1;
void dot_products_int8(const int8_t* x, size_t rows, const int8_t* w, size_t columns, size_t k,
                       int32_t* out, size_t out_stride);

// out[j] = sum over i of q[i] * row_j[i]; the rows lie `stride_bytes` apart.
void dot_rows(const float* q, size_t count, DataType dtype, const void* first_row,
              size_t stride_bytes, size_t rows, float* out);
// sum[i] += sum over j of weight[j] * row_j[i].
void add_weighted_rows(const float* weight, DataType dtype, const void* first_row,
                       size_t stride_bytes, size_t rows, size_t count, float* sum);

// x := exp(x - shift); returns the sum of the new values. NaN stays NaN.
float exp_and_sum(float* x, size_t count, float shift);
// x := x / (1 + exp(-scale x))
void swish(float* x, size_t count, float scale);
float sum_of_squares(const float* x, size_t count);

}  // namespace atb::kernels
