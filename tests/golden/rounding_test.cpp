#include "golden/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tensor/half.h"

namespace ait::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// tensor/half.h rounds floats; every one of these is a float.
TEST(RoundTo, AgreesWithTheConversionsOfTensor) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    EXPECT_EQ(round_to(DType::kFloat16, value), fp16_to_float(float_to_fp16(value))) << value;
    EXPECT_EQ(round_to(DType::kBFloat16, value), bf16_to_float(float_to_bf16(value))) << value;
    EXPECT_EQ(round_to(DType::kFloat32, value), value);
    const float e5m2 = fp8_e5m2_to_float(float_to_fp8_e5m2(value));
    EXPECT_EQ(round_to(DType::kFloat8E5M2, value), e5m2) << value;
  }
}

TEST(RoundTo, GoesToTheEvenOneOfTwoThatAreEquallyNear) {
  EXPECT_EQ(round_to(DType::kFloat16, 2049), 2048);
  EXPECT_EQ(round_to(DType::kFloat16, 2051), 2052);
  EXPECT_EQ(round_to(DType::kFloat16, 65519.99), 65504);
  EXPECT_EQ(round_to(DType::kFloat16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::kFloat16, -1e300), -kInfinity);
  EXPECT_EQ(quantised(2.5), 2);
  EXPECT_EQ(quantised(-300), -128);
  EXPECT_EQ(quantised(1e9), 127);
}

TEST(HalfStep, IsTheMostThatRoundingChanges) {
  EXPECT_EQ(half_step(DType::kFloat16, 1.5), 0x1p-11);
  EXPECT_EQ(half_step(DType::kBFloat16, 1.5), 0x1p-8);
  EXPECT_EQ(half_step(DType::kFloat32, 1.5), 0x1p-24);
  EXPECT_EQ(half_step(DType::kFloat16, 0), 0x1p-25);  // half the smallest number there is
  EXPECT_EQ(half_step(DType::kInt8, 100), 0.5);
  EXPECT_EQ(half_step(DType::kFloat64, 1), 0);
  std::mt19937 random(2);
  std::normal_distribution<double> normal(0, 100);
  for (int i = 0; i < 10000; ++i) {
    const double value = normal(random);
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kInt32})
      EXPECT_LE(std::abs(round_to(dtype, value) - value), half_step(dtype, value)) << value;
  }
}

}  // namespace
}  // namespace ait::golden
