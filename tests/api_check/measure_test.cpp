#include "api_check/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "metrics/compare.h"
#include "values.h"

namespace ait::api_check {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Measure, CountsRelativeErrors) {
  const auto bench = f64({1, 2, 4, 8});
  const auto device = f32({1, 2.001F, 4.0001F, 8.5F});
  const Difference d = measure(bench.view(), device.view(), {});
  EXPECT_EQ(d.below[0], 3U);
  EXPECT_EQ(d.below[1], 3U);
  EXPECT_EQ(d.below[2], 2U);
  EXPECT_DOUBLE_EQ(d.max_absolute, 0.5);
  EXPECT_DOUBLE_EQ(d.max_relative, 0.5 / 8);
  EXPECT_EQ(d.worst, 3U);
}

TEST(Measure, HoldsZerosOfTheDeviceAgainstEpsilon) {
  const auto bench = f64({0, 1e-12, 1e-6, 0});
  const auto device = f32({0, 0, 0, 1e-30F});
  const Difference d = measure(bench.view(), device.view(), {});
  EXPECT_EQ(d.below[2], 2U);  // the first two: 1e-12 is far below 1.2e-7
  EXPECT_EQ(d.max_relative, std::numeric_limits<double>::infinity());
}

TEST(Measure, RoundsTheBenchmarkFirst) {
  const auto bench = f32({1.001F, 3.003F});
  const auto device = bf16({1.001F, 3.003F});
  const Difference rounded = measure(bench.view(), device.view(), {});
  EXPECT_EQ(rounded.max_relative, 0);
  EXPECT_EQ(rounded.roundings, 0);
  const Difference raw = measure(bench.view(), device.view(), {.raw_bench = true});
  EXPECT_GT(raw.max_relative, 0.0005);
}

TEST(Measure, CountsInRoundingsOfTheDevicesType) {
  const float next = std::nextafterf(1, 2);
  const auto bench = f64({1, 1});
  const Difference d = measure(bench.view(), f32({1, next}).view(), {});
  EXPECT_DOUBLE_EQ(d.roundings, 2);  // neighbours are two half steps apart
  EXPECT_DOUBLE_EQ(measure(bench.view(), f64({1, 1 + 0x1p-52}).view(), {}).roundings, 2);
}

TEST(Measure, TakesWhatMovedInputsDoForTheUnit) {
  const auto bench = f64({1e-9, 1, 1, 1});
  const auto moved = f64({1e-9 + 4e-7, 1 - 4e-7, 1 + 4e-7, 1 - 4e-7});
  const auto device = f32({-4e-7F, 1, 1, 1});
  const TensorView view = moved.view();
  EXPECT_GT(measure(bench.view(), device.view(), {}).roundings, 1000);
  EXPECT_NEAR(measure(bench.view(), device.view(), {.moved = &view}).roundings, 1, 0.01);
}

TEST(Measure, TakesItsNeighboursForTheUnit) {
  const auto bench = f64({1e-9, 1, 1, 1});
  const auto device = f32({6e-8F, 1, 1, 1});
  EXPECT_GT(measure(bench.view(), device.view(), {}).roundings, 1000);
  const Difference d = measure(bench.view(), device.view(), {.neighbours = true});
  EXPECT_NEAR(d.roundings, 0.72, 0.05);  // of 0.87, around which all of them are, twice
  EXPECT_NEAR(d.typical, d.roundings / 2, 1e-9);
}

TEST(Measure, EqualNonFiniteValuesAgree) {
  const auto bench = f64({std::nan(""), 1e300, -1e300, 1, 2});
  const auto device = f32({kNan, kInf, -kInf, 1, 2});
  const Difference d = measure(bench.view(), device.view(), {});
  EXPECT_EQ(d.mismatched, 0U);
  EXPECT_EQ(d.below[2], 5U);
  EXPECT_DOUBLE_EQ(*d.cosine, 1);
  EXPECT_EQ(d.roundings, 0);
}

TEST(Measure, OtherNonFiniteValuesDoNot) {
  const auto bench = f64({1, std::nan(""), 1e300, 1});
  const auto device = f32({kNan, 1, -kInf, 1});
  const Difference d = measure(bench.view(), device.view(), {});
  EXPECT_EQ(d.mismatched, 3U);
  EXPECT_EQ(d.below[0], 1U);
  EXPECT_EQ(d.roundings, std::numeric_limits<double>::infinity());
}

TEST(Measure, CosineSeesSignsAndHugeValues) {
  EXPECT_DOUBLE_EQ(*measure(f64({1, 2}).view(), f32({-1, -2}).view(), {}).cosine, -1);
  EXPECT_NEAR(*measure(f64({1e200, 1e200}).view(), f64({1e200, 0}).view(), {}).cosine,
              std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(*measure(f64({1e-10, 1e-10}).view(), f64({1e-10, 0}).view(), {}).cosine,
              std::sqrt(0.5), 1e-12);
  const Difference zero = measure(f64({0, 0}).view(), f32({1, 2}).view(), {});
  EXPECT_FALSE(zero.cosine);
  EXPECT_TRUE(zero.bench_zero);
  EXPECT_FALSE(zero.device_zero);
}

TEST(Measure, IsTheSameForAnyNumberOfThreads) {
  std::vector<double> bench(500'000);
  std::vector<float> device(bench.size());
  for (size_t i = 0; i < bench.size(); ++i) {
    bench[i] = std::sin(static_cast<double>(i));
    device[i] = static_cast<float>(bench[i]) * (i % 7 == 0 ? 1.001F : 1.0F);
  }
  const auto b = f64(bench);
  const auto d = f32(device);
  const Difference many = measure(b.view(), d.view(), {});
  Difference one;
  with_threads(1, [&] { one = measure(b.view(), d.view(), {}); });
  EXPECT_EQ(*many.cosine, *one.cosine);
  EXPECT_EQ(many.below, one.below);
  EXPECT_EQ(many.worst, one.worst);
}

// Elements that are not finite take the whole block on another way, element by element.
TEST(Measure, FiniteBlocksAreMeasuredLikeOthers) {
  constexpr size_t kElements = 10'001;  // the last window is not whole
  constexpr size_t kBlock = 1024;
  std::vector<double> bench(kElements);
  std::vector<float> device(kElements), halves(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    const double x = static_cast<double>(i);
    bench[i] = std::sin(x) * std::exp2(std::fmod(x, 40) - 30);
    const double error = i % 5 == 0 ? 0 : std::cos(3 * x) * std::exp2(-std::fmod(x, 27));
    device[i] = static_cast<float>(bench[i] * (1 + error));
    halves[i] = i % 2 == 0 ? static_cast<float>(bench[i]) : device[i];
    if (i % 97 == 0) device[i] = 0;
    if (i % 89 == 0) bench[i] = device[i] = halves[i] = 0;
    if (i % kBlock == 7) bench[i] = device[i] = halves[i] = 0;
  }
  auto bench_with_nan = bench;
  auto device_with_nan = device, halves_with_nan = halves;
  for (size_t i = 7; i < kElements; i += kBlock)
    bench_with_nan[i] = device_with_nan[i] = halves_with_nan[i] = kNan;
  const auto expect_same = [&](const Difference& finite, const Difference& other) {
    EXPECT_EQ(finite.below, other.below);
    EXPECT_EQ(finite.max_absolute, other.max_absolute);
    EXPECT_EQ(finite.max_relative, other.max_relative);
    EXPECT_EQ(finite.worst, other.worst);
    EXPECT_NEAR(finite.roundings / other.roundings, 1, 0.01);  // of 64 neighbours one is missing
    EXPECT_NEAR(finite.typical / other.typical, 1, 0.01);
    EXPECT_NEAR(*finite.cosine, *other.cosine, 1e-12);
  };
  const auto b = f64(bench), b_nan = f64(bench_with_nan);
  for (const std::string& target : metrics::simd_targets())
    for (const bool neighbours : {false, true}) {
      SCOPED_TRACE(target);
      ASSERT_TRUE(metrics::force_simd_target(target));
      const MeasureOptions options{.neighbours = neighbours};
      expect_same(measure(b.view(), f32(device).view(), options),
                  measure(b_nan.view(), f32(device_with_nan).view(), options));
      expect_same(measure(b.view(), bf16(halves).view(), options),
                  measure(b_nan.view(), bf16(halves_with_nan).view(), options));
    }
  metrics::force_simd_target("");
}

TEST(Measure, CountsZeros) { EXPECT_EQ(count_zeros(f32({0, 1, -0.0F, kNan}).view()), 2U); }

}  // namespace
}  // namespace ait::api_check
