// Two tensors of which one is the other with a relative error of 1e-3, for benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tensor/half.h"
#include "tensor/tensor.h"

namespace ait::bench {

// Roughly normal numbers, cheap enough to fill gigabytes: the sum of four uniform 16-bit ones.
class Random {
 public:
  float next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    const uint64_t s = state_;
    const auto sum =
        static_cast<float>((s & 0xffff) + ((s >> 16) & 0xffff) + ((s >> 32) & 0xffff) + (s >> 48));
    return (sum - 131070.0f) / 37837.0f;
  }

 private:
  uint64_t state_ = 88172645463325252u;
};

inline void store(DType dtype, std::byte* at, float value) {
  if (dtype == DType::kFloat32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const uint16_t bits = dtype == DType::kFloat16 ? float_to_fp16(value) : float_to_bf16(value);
  std::memcpy(at, &bits, sizeof bits);
}

class NoisyPair {
 public:
  // Of float16, bfloat16 or float32.
  NoisyPair(DType dtype, Shape shape)
      : dtype_(dtype),
        shape_(std::move(shape)),
        strides_(row_major_strides(shape_)),
        elements_(*count_elements(shape_)),
        golden_(elements_ * size_bytes(dtype)),
        actual_(golden_.size()) {
    Random random;
    for (size_t i = 0; i < elements_; ++i) {
      const float value = random.next();
      store(dtype, golden_.data() + i * size_bytes(dtype), value);
      store(dtype, actual_.data() + i * size_bytes(dtype), value * (1 + 1e-3f * random.next()));
    }
  }

  TensorView golden() const { return {dtype_, shape_, strides_, golden_.data(), elements_}; }
  TensorView actual() const { return {dtype_, shape_, strides_, actual_.data(), elements_}; }

 private:
  DType dtype_;
  Shape shape_;
  Strides strides_;
  size_t elements_;
  std::vector<std::byte> golden_;
  std::vector<std::byte> actual_;
};

}  // namespace ait::bench
