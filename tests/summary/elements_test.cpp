#include "summary/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

#include "../compare/tensors.h"

namespace ait::summary {
namespace {

template <typename T>
std::string first(DType dtype, T value) {
  const auto tensor = make_tensor<T>(dtype, {1}, {value});
  return element_text(dtype, first_elements(tensor->view(), 5).at(0));
}

TEST(FirstElements, ReadEveryKindByValue) {
  EXPECT_EQ(first<uint8_t>(DType::kBool, 1), "True");
  EXPECT_EQ(first<int8_t>(DType::kInt8, -5), "-5");
  EXPECT_EQ(first<int64_t>(DType::kInt64, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(first<uint64_t>(DType::kUInt64, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(first<uint16_t>(DType::kFloat16, 0x3c00), "1.0");
  EXPECT_EQ(first<uint16_t>(DType::kBFloat16, 0xbf80), "-1.0");
  EXPECT_EQ(first<float>(DType::kFloat32, 0.1F), "0.1");
  EXPECT_EQ(first<double>(DType::kFloat64, 1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(first<uint8_t>(DType::kFloat8E4M3FN, 0x38), "1.0");
  EXPECT_EQ(first<std::complex<float>>(DType::kComplex64, {1, -2}), "1.0-2.0j");
  EXPECT_EQ(first<std::complex<double>>(DType::kComplex128, {0.5, 2}), "0.5+2.0j");
  EXPECT_EQ(first<uint8_t>(DType::kInt4Packed, 0x3f), "0x3f");
}

TEST(FirstElements, StopAtTheEnd) {
  EXPECT_EQ(first_elements(floats({1, 2})->view(), 5).size(), 2U);
  EXPECT_EQ(first_elements(floats({1, 2})->view(), 1).size(), 1U);
  EXPECT_TRUE(first_elements(floats({})->view(), 5).empty());
}

TEST(ElementAt, IsExactWhereADoubleIsNot) {
  const auto tensor = make_tensor<uint64_t>(DType::kUInt64, {2}, {1, UINT64_MAX - 1});
  EXPECT_EQ(element_text(DType::kUInt64, element_at(tensor->view(), 1)), "18446744073709551614");
}

TEST(CoordinatesText, IsTheIndexInEachDimension) {
  EXPECT_EQ(coordinates_text(Shape{2, 3, 4}, 0), "[0, 0, 0]");
  EXPECT_EQ(coordinates_text(Shape{2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(coordinates_text(Shape{2, 3, 4}, 17), "[1, 1, 1]");
  EXPECT_EQ(coordinates_text(Shape{}, 0), "[]");
}

}  // namespace
}  // namespace ait::summary
