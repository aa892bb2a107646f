#include "metrics/extremes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ait::metrics {
namespace {

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> out(tensor.elements());
  gather(tensor.view(), 0, out.size(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

template <typename T>
Extremes extremes(DType dtype, const std::vector<T>& values) {
  const auto tensor =
      Tensor::contiguous(nullptr, std::as_bytes(std::span(values)), dtype,
                         {static_cast<int64_t>(values.size() * sizeof(T) / size_bytes(dtype))});
  return extremes_of(tensor->view()).value();
}

DType common(std::vector<DType> types) {
  std::vector<Extremes> rows;
  for (const DType type : types) rows.push_back({type, 0, 0});
  return common_type(rows);
}

TEST(Extremes, AreExactOfWideIntegers) {
  const int64_t low = std::numeric_limits<int64_t>::min() + 1;
  const auto found = extremes<int64_t>(DType::kInt64, {5, low, int64_t{1} << 62 | 1});
  const auto array = array_of(found);
  EXPECT_EQ(values_of<int64_t>(*array), (std::vector<int64_t>{low, int64_t{1} << 62 | 1}));
  const uint64_t high = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(values_of<uint64_t>(*array_of(extremes<uint64_t>(DType::kUInt64, {high, 7}))),
            (std::vector<uint64_t>{7, high}));
}

TEST(Extremes, NaNWinsAndInfinityIsALargeNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Extremes with_nan = extremes<float>(DType::kFloat32, {1, nan, 3});
  EXPECT_TRUE(std::isnan(with_nan.minimum) && std::isnan(with_nan.maximum));
  const Extremes with_infinity = extremes<float>(DType::kFloat32, {1, infinity, 3});
  EXPECT_EQ(with_infinity.minimum, 1);
  EXPECT_EQ(with_infinity.maximum, infinity);
}

TEST(Extremes, OfNoElementsAreNaN) {
  const Extremes integers = extremes<int32_t>(DType::kInt32, {});
  EXPECT_EQ(integers.dtype, DType::kFloat64);
  EXPECT_TRUE(std::isnan(integers.minimum) && std::isnan(integers.maximum));
  EXPECT_EQ(extremes<uint16_t>(DType::kFloat16, {}).dtype, DType::kFloat16);
}

TEST(Extremes, TypesThatNumpyLacksBecomeFloat32) {
  const Extremes found = extremes<uint16_t>(DType::kBFloat16, {0x3f80, 0xc000});
  EXPECT_EQ(found.dtype, DType::kFloat32);
  EXPECT_EQ(values_of<float>(*array_of(found)), (std::vector<float>{-2, 1}));
}

TEST(Extremes, ComplexNumbersHaveNone) {
  const std::vector<float> values{1, 2};
  const auto tensor =
      Tensor::contiguous(nullptr, std::as_bytes(std::span(values)), DType::kComplex64, {1});
  EXPECT_EQ(extremes_of(tensor->view()).error().code(), ErrorCode::kUnsupported);
}

// What numpy.promote_types says; tests/e2e/test_convert.py asks numpy itself.
TEST(Extremes, TypesArePromotedAsByNumpy) {
  EXPECT_EQ(common({}), DType::kFloat64);
  EXPECT_EQ(common({DType::kBool, DType::kBool}), DType::kBool);
  EXPECT_EQ(common({DType::kBool, DType::kInt8}), DType::kInt8);
  EXPECT_EQ(common({DType::kInt8, DType::kUInt8}), DType::kInt16);
  EXPECT_EQ(common({DType::kInt32, DType::kUInt8}), DType::kInt32);
  EXPECT_EQ(common({DType::kInt8, DType::kUInt64}), DType::kFloat64);
  EXPECT_EQ(common({DType::kFloat16, DType::kUInt8}), DType::kFloat16);
  EXPECT_EQ(common({DType::kFloat16, DType::kInt16}), DType::kFloat32);
  EXPECT_EQ(common({DType::kInt32, DType::kFloat32}), DType::kFloat64);
  EXPECT_EQ(common({DType::kFloat16, DType::kFloat32}), DType::kFloat32);
}

}  // namespace
}  // namespace ait::metrics
