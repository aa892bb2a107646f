// Tensors of every type for the tests of the metrics.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tensor/half.h"
#include "tensor/tensor.h"

namespace ait::metrics {

struct Data {
  DType dtype;
  std::vector<std::byte> bytes;
  Shape shape;
  Strides strides;

  TensorView view() const { return {dtype, shape, strides, bytes.data(), *count_elements(shape)}; }
};

template <typename T>
void put(std::vector<std::byte>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

inline void store(DType dtype, std::vector<std::byte>& bytes, size_t i, double value) {
  const auto f = static_cast<float>(value);
  const auto integer = [&]<typename T>(T) {
    if (!std::isfinite(value)) return put(bytes, i, T{});
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    const double scaled = std::round(value * 10);
    put(bytes, i,
        scaled <= low    ? std::numeric_limits<T>::min()
        : scaled >= high ? std::numeric_limits<T>::max()
                         : static_cast<T>(scaled));
  };
  switch (dtype) {
    case DType::kBool:
      return put<uint8_t>(bytes, i, value > 0);
    case DType::kInt8:
      return integer(int8_t{});
    case DType::kUInt8:
      return integer(uint8_t{});
    case DType::kInt16:
      return integer(int16_t{});
    case DType::kUInt16:
      return integer(uint16_t{});
    case DType::kInt32:
      return integer(int32_t{});
    case DType::kUInt32:
      return integer(uint32_t{});
    case DType::kInt64:
      return integer(int64_t{});
    case DType::kUInt64:
      return integer(uint64_t{});
    case DType::kFloat16:
      return put(bytes, i, float_to_fp16(f));
    case DType::kBFloat16:
      return put(bytes, i, float_to_bf16(f));
    case DType::kFloat32:
      return put(bytes, i, f);
    case DType::kFloat64:
      return put(bytes, i, value);
    case DType::kFloat8E5M2:
      return put(bytes, i, float_to_fp8_e5m2(f));
    default:
      return put(bytes, i, float_to_fp8_e4m3fn(f));
  }
}

inline Data make(DType dtype, const std::vector<double>& values, Shape shape = {}) {
  Data data{
      dtype, std::vector<std::byte>(values.size() * size_bytes(dtype) + 1), std::move(shape), {}};
  if (data.shape.empty()) data.shape = {static_cast<int64_t>(values.size())};
  data.strides = row_major_strides(data.shape);
  for (size_t i = 0; i < values.size(); ++i) store(dtype, data.bytes, i, values[i]);
  return data;
}

inline std::vector<double> normal(size_t n, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  std::vector<double> values(n);
  for (double& v : values) v = scale * draw(random);
  return values;
}

inline std::vector<double> near(const std::vector<double>& values, double noise, unsigned seed) {
  std::vector<double> out = normal(values.size(), seed, noise);
  for (size_t i = 0; i < out.size(); ++i) out[i] = values[i] * (1 + out[i]);
  return out;
}

inline constexpr DType kTypes[] = {
    DType::kBool,     DType::kInt8,    DType::kUInt8,   DType::kInt16,        DType::kUInt16,
    DType::kInt32,    DType::kUInt32,  DType::kInt64,   DType::kUInt64,       DType::kFloat16,
    DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3FN, DType::kFloat8E5M2};

}  // namespace ait::metrics
