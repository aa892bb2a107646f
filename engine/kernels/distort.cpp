#include "kernels/distort.h"

#include <algorithm>
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

// splitmix64: numbers that look random, each from its place alone.
uint64_t scramble(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
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

void perturb(float unit, uint64_t seed, std::span<const Tensor> out) {
  std::vector<float> block(kBlock);
  for (const Tensor& tensor : out) {
    seed = scramble(seed);
    const DataType dtype = tensor.desc.dtype;
    if (!is_floating(dtype)) continue;
    const auto count = static_cast<size_t>(tensor.desc.dims.count());
    for (size_t at = 0; at < count; at += kBlock) {
      const size_t here = std::min(kBlock, count - at);
      auto* place = tensor.as<uint8_t>() + at * element_bytes(dtype);
      widen(dtype, place, here, block.data());
      for (size_t i = 0; i < here; ++i) {
        // From -1 to 1 in steps of 2^-23: exact as a float.
        const auto number = static_cast<int64_t>(scramble(seed + at + i) >> 40);
        const float share = static_cast<float>(number - (1 << 23)) * 0x1p-23f;
        const float moved = block[i] + block[i] * (share * unit);
        if (std::isfinite(moved)) block[i] = moved;
      }
      narrow(block.data(), here, dtype, place);
    }
  }
}

}  // namespace atb::kernels
