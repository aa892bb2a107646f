// Small tensors made in a test.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace ait {

template <typename T>
Result<Tensor> make_tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  auto owner = std::make_shared<std::vector<T>>(values);
  return Tensor::contiguous(owner, std::as_bytes(std::span<const T>(*owner)), dtype,
                            std::move(shape));
}

inline Result<Tensor> floats(const std::vector<float>& values) {
  return make_tensor(DType::kFloat32, {static_cast<int64_t>(values.size())}, values);
}

inline Result<Tensor> floats(Shape shape, const std::vector<float>& values) {
  return make_tensor(DType::kFloat32, std::move(shape), values);
}

}  // namespace ait
