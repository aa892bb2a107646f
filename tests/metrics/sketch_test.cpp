// Sketches against plain loops of their definition, and estimates against the distances that they are of.
#include "metrics/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "data.h"
#include "metrics/compare.h"

namespace ait::metrics {
namespace {

Data data_of(const std::vector<double>& values, Shape shape, DType dtype = DType::kFloat32) {
  Data data{dtype, std::vector<std::byte>(values.size() * size_bytes(dtype)), shape,
            row_major_strides(shape)};
  for (size_t i = 0; i < values.size(); ++i) store(dtype, data.bytes, i, values[i]);
  return data;
}

std::vector<double> normal(size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> draw;
  std::vector<double> out(count);
  for (double& each : out) each = static_cast<float>(draw(random));
  return out;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double each : values) sum += each * each;
  return std::sqrt(sum);
}

struct Truth {
  double distance;
  double cosine;
};

Truth truth_of(const std::vector<double>& golden, const std::vector<double>& actual) {
  double dd = 0, gm = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    dd += (golden[i] - actual[i]) * (golden[i] - actual[i]);
    gm += golden[i] * actual[i];
  }
  return {std::sqrt(dd) / norm(golden), gm / norm(golden) / norm(actual)};
}

std::optional<Estimate> estimate_of(const std::vector<double>& golden,
                                    const std::vector<double>& actual, const Shape& shape) {
  return estimate(sketch(data_of(golden, shape).view()), norm(golden),
                  sketch(data_of(actual, shape).view()), norm(actual));
}

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// As docs/metrics.md has it.
std::vector<double> reference_projections(const std::vector<double>& values) {
  std::vector<double> out(256);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t line = i / 64, place = i % 64;
    for (size_t part = 0; part < 4; ++part) {
      const bool minus = mixed(4 * line + part) >> place & 1;
      const size_t turn = mixed(~uint64_t{line}) >> (16 * part) & 63;
      out[part * 64 + (place + turn) % 64] += minus ? -values[i] : values[i];
    }
  }
  return out;
}

class SketchTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_simd_target(GetParam())); }
  void TearDown() override { force_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(Targets, SketchTest, ::testing::ValuesIn(simd_targets()),
                         [](const auto& each) { return each.param; });

TEST_P(SketchTest, IsWhatItsDefinitionSays) {
  std::mt19937_64 random(7);
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 63}, {64, 64}, {300, 33}, {5, 4099}, {1000, 17}}) {
    const auto values = normal(static_cast<size_t>(rows * columns), random);
    const Sketch got = sketch(data_of(values, {rows, columns}).view());
    const auto want = reference_projections(values);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got.projections[i], want[i], 1e-6 * (1 + std::fabs(want[i])));

    const auto row_group = static_cast<size_t>((rows + 255) / 256);
    std::vector<double> by_row((static_cast<size_t>(rows) + row_group - 1) / row_group);
    for (size_t i = 0; i < values.size(); ++i)
      by_row[i / static_cast<size_t>(columns) / row_group] += values[i] * values[i];
    ASSERT_EQ(got.rows.size(), by_row.size());
    for (size_t i = 0; i < by_row.size(); ++i)
      EXPECT_NEAR(got.rows[i], std::sqrt(by_row[i]), 1e-6 * std::sqrt(by_row[i]));

    const auto column_group = static_cast<size_t>((columns + 255) / 256);
    std::vector<double> by_column((static_cast<size_t>(columns) + column_group - 1) / column_group);
    for (size_t i = 0; i < values.size(); ++i)
      by_column[i % static_cast<size_t>(columns) / column_group] += values[i] * values[i];
    ASSERT_EQ(got.columns.size(), by_column.size());
    for (size_t i = 0; i < by_column.size(); ++i)
      EXPECT_NEAR(got.columns[i], std::sqrt(by_column[i]), 1e-6 * std::sqrt(by_column[i]));
  }
}

TEST_P(SketchTest, IsTheSameOnEveryInstructionSet) {
  std::mt19937_64 random(8);
  const Data data = data_of(normal(50'000, random), {50, 1000}, DType::kBFloat16);
  const Sketch here = sketch(data.view());
  force_simd_target(simd_targets().front());
  EXPECT_EQ(here, sketch(data.view()));
}

// Ways in which tensors differ: everywhere, in a few elements, in a row, in a column, by an order.
void damage(std::vector<double>& values, size_t rows, size_t columns, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return random() % limit; };
  const double size = std::pow(10.0, -static_cast<double>(below(6)));
  const auto some = normal(values.size(), random);
  switch (below(6)) {
    case 0:
      for (size_t i = 0; i < values.size(); ++i) values[i] += size * some[i];
      break;
    case 1:
      for (size_t k = below(8) + 1; k > 0; --k) values[below(values.size())] += size;
      break;
    case 2: {
      const size_t row = below(rows);
      for (size_t i = 0; i < columns; ++i) values[row * columns + i] = some[i];
      break;
    }
    case 3: {
      const size_t column = below(columns);
      for (size_t i = 0; i < rows; ++i) values[i * columns + column] += size * some[i];
      break;
    }
    case 4:  // one token late
      std::rotate(values.begin(), values.end() - static_cast<std::ptrdiff_t>(columns),
                  values.end());
      break;
    default:
      for (double& each : values) each *= 1 + size;
  }
  for (double& each : values) each = static_cast<float>(each);
}

TEST(Sketch, AnEstimateIsWithinItsBoundInNinetyNineOfAHundredCases) {
  std::mt19937_64 random(20261116);
  constexpr size_t kCases = 10'000;
  size_t distance = 0, cosine = 0;
  for (size_t i = 0; i < kCases; ++i) {
    const size_t rows = 2 + random() % 40, columns = 2 + random() % 130;
    const auto golden = normal(rows * columns, random);
    auto actual = golden;
    damage(actual, rows, columns, random);
    const auto got =
        estimate_of(golden, actual, {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
    ASSERT_TRUE(got);
    const Truth truth = truth_of(golden, actual);
    const double rounding = 1e-7 * truth.distance;
    distance += got->distance.least <= truth.distance + rounding &&
                truth.distance <= got->distance.most + rounding;
    cosine += got->cosine.least <= truth.cosine + 1e-9 && truth.cosine <= got->cosine.most + 1e-9;
  }
  EXPECT_GE(distance, kCases * 99 / 100);
  EXPECT_GE(cosine, kCases * 99 / 100);
  RecordProperty("distances within", static_cast<int>(distance));
  RecordProperty("cosines within", static_cast<int>(cosine));
  printf("%zu distances and %zu cosines of %zu are within their bounds\n", distance, cosine,
         kCases);
}

TEST(Sketch, SeesWhatStatisticsDoNot) {
  std::mt19937_64 random(3);
  const Shape shape{1000, 256};
  const auto golden = normal(256'000, random);

  // Channels in another order, a shift by one token: extremes, mean and norm are the same.
  auto permuted = golden;
  for (size_t row = 0; row < 1000; ++row)
    std::reverse(permuted.begin() + static_cast<std::ptrdiff_t>(row * 256),
                 permuted.begin() + static_cast<std::ptrdiff_t>(row * 256 + 256));
  auto shifted = golden;
  std::rotate(shifted.begin(), shifted.begin() + 256, shifted.end());
  for (const auto& each : {permuted, shifted}) {
    const auto got = estimate_of(golden, each, shape);
    ASSERT_TRUE(got);
    EXPECT_GT(got->distance.least, 1);
    EXPECT_LT(got->cosine.most, 0.5);
  }

  // One row of a thousand is something else, and twice as large.
  auto destroyed = golden;
  for (size_t i = 0; i < 256; ++i) destroyed[417 * 256 + i] = -2 * golden[i];
  const auto got = estimate_of(golden, destroyed, shape);
  ASSERT_TRUE(got);
  const Truth truth = truth_of(golden, destroyed);
  EXPECT_GT(got->distance.least, 0.7 * truth.distance);
  EXPECT_LT(got->distance.most, 1.4 * truth.distance);
  ASSERT_TRUE(got->row);
  EXPECT_LE(got->row->first, 417u);
  EXPECT_GE(got->row->last, 417u);
  EXPECT_LT(got->row->last - got->row->first, 4u);

  auto column = golden;
  for (size_t row = 0; row < 1000; ++row) column[row * 256 + 99] *= 3;
  const auto of_column = estimate_of(golden, column, shape);
  ASSERT_TRUE(of_column && of_column->column);
  EXPECT_EQ(of_column->column->first, 99u);
  EXPECT_EQ(of_column->column->last, 99u);
}

TEST(Sketch, IdenticalTensorsAreSaidToBeSo) {
  std::mt19937_64 random(4);
  const auto values = normal(5000, random);
  const auto got = estimate_of(values, values, {50, 100});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->distance.least, 0);
  EXPECT_LT(got->distance.most, 1e-6);
  EXPECT_FALSE(got->row);
  EXPECT_FALSE(got->column);
}

TEST(Sketch, WhatIsNotFiniteCountsAsZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sketch(data_of({1, nan, 2, inf, -inf, 3}, {2, 3}).view()),
            sketch(data_of({1, 0, 2, 0, 0, 3}, {2, 3}).view()));
}

TEST(Sketch, EstimatesNothingThatItCannot) {
  const Sketch one = sketch(data_of({1, 2, 3, 4}, {2, 2}).view());
  EXPECT_FALSE(estimate(one, 5, sketch(data_of({1, 2, 3, 4}, {4, 1}).view()), 5));
  EXPECT_FALSE(estimate(one, 0, one, 5));
  EXPECT_FALSE(estimate(one, nan(""), one, 5));
  // Projections beyond float32.
  const double huge = 1e300;
  const Sketch beyond = sketch(data_of({huge, huge}, {1, 2}, DType::kFloat64).view());
  EXPECT_FALSE(estimate(beyond, huge, beyond, huge));
}

TEST(Sketch, TextGivesItBack) {
  std::mt19937_64 random(5);
  const Shape shape{3, 700};
  const Sketch want = sketch(data_of(normal(2100, random), shape).view());
  const std::string text = sketch_text(want);
  EXPECT_EQ(parse_sketch(text, DType::kFloat32, shape), want);
  EXPECT_FALSE(parse_sketch(text, DType::kFloat32, {3, 100}));
  EXPECT_FALSE(parse_sketch(text.substr(0, text.size() - 4), DType::kFloat32, shape));
  EXPECT_FALSE(parse_sketch("2" + text.substr(1), DType::kFloat32, shape));
  EXPECT_FALSE(parse_sketch("", DType::kFloat32, shape));
  Sketch broken = want;
  broken.rows[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(parse_sketch(sketch_text(broken), DType::kFloat32, shape));
}

TEST(Sketch, EmptyAndScalarTensorsHaveOne) {
  const Sketch empty = sketch(data_of({}, {0, 4}).view());
  EXPECT_EQ(parse_sketch(sketch_text(empty), DType::kFloat32, {0, 4}), empty);
  const Sketch scalar = sketch(data_of({2.5}, {}).view());
  EXPECT_EQ(scalar.rows, std::vector<float>{2.5});
  EXPECT_EQ(parse_sketch(sketch_text(scalar), DType::kFloat32, {}), scalar);
}

}  // namespace
}  // namespace ait::metrics
