#include "api_check/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/parallel.h"
#include "metrics/compare.h"
#include "tensor/half.h"

namespace ait::api_check {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

constexpr size_t kMany = 300'000;

std::vector<float> reals(const Stream& stream, double low, double high, size_t elements) {
  std::vector<float> out(elements);
  draw_reals(stream, DType::kFloat32, low, high, elements, out.data());
  return out;
}

TEST(Random, SpreadsEvenlyAndHasTheExtremes) {
  const auto values = reals({1234, "Torch*cat*0", 0}, -1, 3, kMany);
  EXPECT_EQ(values.front(), -1);
  EXPECT_EQ(values.back(), 3);
  EXPECT_THAT(values, Each(Ge(-1)));
  EXPECT_THAT(values, Each(Le(3)));
  std::vector<size_t> bins(8);
  for (const float value : values)
    ++bins[std::min(size_t{7}, static_cast<size_t>((value + 1) * 2))];
  for (const size_t bin : bins) EXPECT_NEAR(static_cast<double>(bin), kMany / 8.0, 1500);
}

TEST(Random, IsTheSameForAnyNumberOfThreads) {
  const Stream stream{7, "Tensor*add*3", 1};
  const auto all = reals(stream, 0, 1, kMany);
  std::vector<float> one;
  with_threads(1, [&] { one = reals(stream, 0, 1, kMany); });
  EXPECT_EQ(all, one);
}

TEST(Random, IsTheSameOnEveryMachine) {
  std::vector<int64_t> values(5);
  draw_integers({1234, "Torch*cat*0", 0}, DType::kInt64, 0, 1'000'000, 5, values.data());
  EXPECT_EQ(values, (std::vector<int64_t>{0, 883'007, 167'352, 784'705, 1'000'000}));
}

TEST(Random, IsTheSameForEveryInstructionSet) {
  const Stream stream{1234, "Torch*cat*0", 0};
  for (const std::string& target : metrics::simd_targets()) {
    ASSERT_TRUE(metrics::force_simd_target(target));
    const auto values = reals(stream, -1, 3, 1001);
    EXPECT_EQ(values[500], 0x1.e907260000000p-2F) << target;
    EXPECT_EQ(values[999], -0x1.d43d0e0000000p-2F) << target;
    std::vector<double> wide(1001);
    draw_reals(stream, DType::kFloat64, -1, 3, wide.size(), wide.data());
    EXPECT_EQ(wide[999], -0x1.ac156abed3bf0p-3) << target;
  }
  metrics::force_simd_target("");
}

TEST(Random, DiffersBySeedKeyAndTensor) {
  const auto base = reals({1, "a", 0}, 0, 1, 100);
  EXPECT_NE(base, reals({2, "a", 0}, 0, 1, 100));
  EXPECT_NE(base, reals({1, "b", 0}, 0, 1, 100));
  EXPECT_NE(base, reals({1, "a", 1}, 0, 1, 100));
  EXPECT_EQ(base, reals({1, "a", 0}, 0, 1, 100));
}

TEST(Random, KeepsToTheRangeOfNarrowTypes) {
  std::vector<uint16_t> bits(1000);
  draw_reals({1, "a", 0}, DType::kFloat16, -65504, 65504, bits.size(), bits.data());
  for (const uint16_t each : bits) EXPECT_TRUE(std::isfinite(fp16_to_float(each)));
  EXPECT_EQ(fp16_to_float(bits.back()), 65504);
  draw_reals({1, "a", 0}, DType::kBFloat16, 1, 1, bits.size(), bits.data());
  for (const uint16_t each : bits) EXPECT_EQ(bf16_to_float(each), 1);
}

TEST(Random, SpansTheWholeRangeOfATypeWithoutOverflow) {
  std::vector<double> wide(1000);
  constexpr double kLargest = std::numeric_limits<double>::max();
  draw_reals({1, "a", 0}, DType::kFloat64, -kLargest, kLargest, wide.size(), wide.data());
  EXPECT_THAT(wide, Each(Ge(-kLargest)));
  EXPECT_THAT(wide, Each(Le(kLargest)));
  std::vector<int64_t> whole(1000);
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  draw_integers({1, "a", 0}, DType::kInt64, kLow, kHigh, whole.size(), whole.data());
  EXPECT_EQ(whole.front(), kLow);
  EXPECT_EQ(whole.back(), kHigh);
  EXPECT_TRUE(std::any_of(whole.begin() + 1, whole.end() - 1, [](int64_t v) { return v > 0; }));
  EXPECT_TRUE(std::any_of(whole.begin() + 1, whole.end() - 1, [](int64_t v) { return v < 0; }));
}

TEST(Random, DrawsEveryWholeNumberOfARange) {
  std::vector<int8_t> values(1000);
  draw_integers({1, "a", 0}, DType::kInt8, -2, 3, values.size(), values.data());
  for (int8_t wanted = -2; wanted <= 3; ++wanted)
    EXPECT_GT(std::count(values.begin(), values.end(), wanted), 100);
  EXPECT_THAT(values, Each(Ge(-2)));
  EXPECT_THAT(values, Each(Le(3)));
}

TEST(Random, SingleElementsAreTheHighest) {
  EXPECT_EQ(reals({1, "a", 0}, -1, 3, 1), std::vector<float>{3});
}

TEST(Random, MasksHaveExactlySoManyTrue) {
  for (const size_t wanted : {size_t{0}, size_t{1}, size_t{500}, size_t{999}, size_t{1000}}) {
    std::vector<uint8_t> mask(1000);
    draw_mask({1, "a", 0}, wanted, mask.size(), mask.data());
    EXPECT_EQ(std::accumulate(mask.begin(), mask.end(), size_t{0}), wanted);
  }
}

TEST(Random, RowsOfLargeMatricesDiffer) {
  constexpr size_t kRows = 2100, kColumns = 1024;
  const auto values = reals({1, "a", 0}, 0, 1, kRows * kColumns);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < kRows; ++i)
    rows.emplace_back(&values[i * kColumns], &values[i * kColumns] + kColumns);
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
  EXPECT_EQ(values.back(), 1);
}

TEST(Random, MovesElementsUpAndDownByAShare) {
  std::vector<double> values(1000, 2.0);
  values.front() = std::numeric_limits<double>::max();
  values[1] = std::numeric_limits<double>::infinity();
  move_reals({1, "", 0}, DType::kFloat64, 0.25, values.size(), values.data());
  EXPECT_TRUE(std::isfinite(values.front()));
  EXPECT_FALSE(std::isfinite(values[1]));
  const auto up = std::count(values.begin() + 2, values.end(), 2.5);
  EXPECT_NEAR(static_cast<double>(up), 500, 80);
  EXPECT_EQ(up + std::count(values.begin() + 2, values.end(), 1.5), 998);
}

TEST(Random, EitherHasTheTwoValuesAlone) {
  std::vector<float> values(1000);
  draw_either({1, "a", 0}, DType::kFloat32, -1e30, 0, values.size(), values.data());
  const auto zeros = std::count(values.begin(), values.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(zeros), 500, 80);
  EXPECT_EQ(zeros + std::count(values.begin(), values.end(), -1e30F), 1000);
}

}  // namespace
}  // namespace ait::api_check
