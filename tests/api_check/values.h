// Tensors of a few values.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/half.h"
#include "tensor/tensor.h"

namespace ait::api_check {

// Owns what it shows.
template <typename T>
class Values {
 public:
  Values(DType dtype, std::vector<T> values)
      : dtype_(dtype), values_(std::move(values)), shape_{static_cast<int64_t>(values_.size())} {}
  TensorView view() const {
    return {dtype_, shape_, strides_, reinterpret_cast<const std::byte*>(values_.data()),
            values_.size()};
  }

 private:
  DType dtype_;
  std::vector<T> values_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_{1};
};

inline Values<double> f64(std::vector<double> values) {
  return {DType::kFloat64, std::move(values)};
}
inline Values<float> f32(std::vector<float> values) { return {DType::kFloat32, std::move(values)}; }
inline Values<int64_t> i64(std::vector<int64_t> values) {
  return {DType::kInt64, std::move(values)};
}
inline Values<uint16_t> bf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_bf16(value));
  return {DType::kBFloat16, std::move(bits)};
}

}  // namespace ait::api_check
