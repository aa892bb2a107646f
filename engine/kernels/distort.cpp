#include "kernels/distort.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/simd.h"
#include "tensor/half.h"

namespace atb::kernels {
namespace {

// Elements widened at a time.
constexpr size_t kBlock = 4096;

void through_fp16(float* values, size_t count, float scale) {
  for (size_t i = 0; i < count; ++i)
    values[i] = ait::fp16_to_float(ait::float_to_fp16(values[i] * scale)) / scale;
}

void shift_row(float* row, size_t count, float size) {
  const float rms = std::sqrt(sum_of_squares(row, count) / static_cast<float>(count));
  for (size_t i = 0; i < count; ++i) row[i] += size * rms;
}

}  // namespace

bool holds_infinity(const Tensor& tensor) {
  if (!is_floating(tensor.desc.dtype)) return false;
  const auto count = static_cast<size_t>(tensor.desc.dims.count());
  const size_t bytes = element_bytes(tensor.desc.dtype);
  std::vector<float> block(std::min(count, kBlock));
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t here = std::min(kBlock, count - at);
    widen(tensor.desc.dtype, tensor.as<uint8_t>() + at * bytes, here, block.data());
    for (size_t i = 0; i < here; ++i)
      if (std::isinf(block[i])) return true;
  }
  return false;
}

void distort(const KernelFault& fault, std::span<const Tensor> out) {
  if (fault.kind == KernelFault::Kind::kEpsilon) return;
  for (const Tensor& tensor : out) {
    const DataType dtype = tensor.desc.dtype;
    const auto total = static_cast<size_t>(tensor.desc.dims.count());
    if (!is_floating(dtype) || total == 0) continue;
    const bool row_only = fault.kind == KernelFault::Kind::kRow;
    const size_t count = row_only ? static_cast<size_t>(tensor.desc.dims.back()) : total;
    auto* at = tensor.as<uint8_t>() + (total - count) * element_bytes(dtype);
    std::vector<float> values(count);
    widen(dtype, at, count, values.data());
    if (row_only)
      shift_row(values.data(), count, fault.size);
    else if (fault.kind == KernelFault::Kind::kOverflow)
      through_fp16(values.data(), count, fault.size);
    else
      for (float& value : values) value *= 1 + fault.size;
    narrow(values.data(), count, dtype, at);
  }
}

}  // namespace atb::kernels
