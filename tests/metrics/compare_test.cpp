// Every kernel on every instruction set of this CPU against plain loops in long double.
#include "metrics/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data.h"
#include "reference.h"

namespace ait::metrics {
namespace {

// Sums in double against sums in long double, and |m/g - 1| against |m - g|/|g|: both leave about
// 1e-16 absolutely, 1e-9 of the smallest relative errors that occur here.
constexpr double kTolerance = 1e-9;
constexpr double kKlAbsolute = 1e-12;
constexpr double kKlRelative = 1e-5;

void expect_near(double got, double want, const char* what, double absolute = 0,
                 double relative = kTolerance) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << what << " is " << got;
  } else if (std::isinf(want) || want == 0) {
    if (absolute == 0 || std::isinf(want)) {
      EXPECT_EQ(got, want) << what;
    } else {
      EXPECT_NEAR(got, want, absolute) << what;
    }
  } else {
    EXPECT_NEAR(got, want, std::fabs(want) * relative + absolute) << what;
  }
}

void expect_same_kl(double got, double want, const char* what) {
  expect_near(got, want, what, kKlAbsolute, kKlRelative);
}

void expect_same(const Side& got, const Side& want) {
  EXPECT_EQ(got.elements, want.elements);
  EXPECT_EQ(got.nan, want.nan);
  EXPECT_EQ(got.positive_inf, want.positive_inf);
  EXPECT_EQ(got.negative_inf, want.negative_inf);
  expect_near(got.minimum, want.minimum, "minimum");
  expect_near(got.maximum, want.maximum, "maximum");
  // A mean near zero of large values has no relative precision to speak of.
  const double size = std::isfinite(want.l2_norm) ? want.l2_norm : 0;
  expect_near(got.mean, want.mean, "mean", size * 1e-14);
  expect_near(got.l2_norm, want.l2_norm, "l2_norm");
}

void expect_same(const Comparison& got, const Comparison& want) {
  expect_same(got.golden, want.golden);
  expect_same(got.actual, want.actual);
  EXPECT_EQ(got.elements, want.elements);
  EXPECT_EQ(got.compared, want.compared);
  EXPECT_EQ(got.identical, want.identical);
  EXPECT_EQ(got.differing, want.differing);
  EXPECT_EQ(got.zero_golden_mismatch, want.zero_golden_mismatch);
  EXPECT_EQ(got.non_finite_agree, want.non_finite_agree);
  EXPECT_EQ(got.passes, want.passes);
  EXPECT_EQ(got.worst_index, want.worst_index);
  if (want.compared == 0) return;
  expect_near(got.cosine_similarity, want.cosine_similarity, "cosine_similarity", 1e-15);
  expect_near(got.max_absolute_error, want.max_absolute_error, "max_absolute_error");
  expect_near(got.mean_absolute_error, want.mean_absolute_error, "mean_absolute_error");
  expect_near(got.max_relative_error, want.max_relative_error, "max_relative_error", 1e-15);
  expect_near(got.mean_relative_error, want.mean_relative_error, "mean_relative_error", 1e-15);
  expect_near(got.relative_euclidean_distance, want.relative_euclidean_distance,
              "relative_euclidean_distance");
  expect_same_kl(got.kl_divergence, want.kl_divergence, "kl_divergence");
  ASSERT_EQ(got.row.has_value(), want.row.has_value());
  if (got.row) {
    EXPECT_EQ(got.row->rows, want.row->rows);
    expect_near(got.row->worst_row_cosine, want.row->worst_row_cosine, "worst_row_cosine", 1e-13);
    expect_same_kl(got.row->kl_mean, want.row->kl_mean, "kl_mean");
    expect_same_kl(got.row->kl_max, want.row->kl_max, "kl_max");
  }
}

class Metrics : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(force_simd_target(GetParam())); }
  void TearDown() override { force_simd_target(""); }

  static void check(const Data& golden, const Data& actual, Request request = {}) {
    const auto got = compare(golden.view(), actual.view(), request);
    ASSERT_TRUE(got) << got.error().text();
    expect_same(*got, reference_compare(golden.view(), actual.view(), request));
  }
};

TEST_P(Metrics, AgreeWithPlainLoopsForEveryPairOfTypes) {
  const auto values = normal(5000, 1);
  const auto others = near(values, 0.01, 2);
  for (const DType g : kTypes)
    for (const DType m : kTypes) {
      SCOPED_TRACE(std::string(name(g)) + " against " + std::string(name(m)));
      check(make(g, values), make(m, others));
    }
}

TEST_P(Metrics, AgreeForEveryLengthAroundTheVectorAndBlockSizes) {
  for (const size_t n : {1u,  2u,  3u,  7u,  8u,   15u,   16u,   17u,   31u,   32u,
                         33u, 63u, 65u, 96u, 127u, 2047u, 2048u, 2049u, 4064u, 4100u}) {
    const auto values = normal(n, static_cast<unsigned>(n));
    const auto others = near(values, 1e-3, 77);
    for (const DType dtype :
         {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(std::to_string(n) + " of " + std::string(name(dtype)));
      check(make(dtype, values), make(dtype, others));
    }
  }
}

TEST_P(Metrics, AgreeForTinyHugeDenormalAndZeroValues) {
  const auto values = normal(3000, 3);
  for (const double scale : {1e-45, 1e-40, 1e-30, 1e-8, 1e-7, 1e4, 1e15, 1e30, 1e38, 0.0}) {
    auto scaled = values;
    for (double& v : scaled) v *= scale;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      SCOPED_TRACE(std::to_string(scale) + " " + std::string(name(dtype)));
      check(make(dtype, scaled), make(dtype, near(scaled, 0.02, 4)));
      check(make(dtype, std::vector<double>(3000)), make(dtype, scaled));
      check(make(dtype, scaled), make(dtype, std::vector<double>(3000)));
    }
  }
}

TEST_P(Metrics, SquaresOfDoublesNeitherOverflowNorVanish) {
  const auto values = normal(3000, 5);
  for (const double scale : {1e-308, 1e-250, 1e-170, 1e150, 1e200, 1e300}) {
    SCOPED_TRACE(scale);
    auto scaled = values;
    for (double& v : scaled) v *= scale;
    check(make(DType::kFloat64, scaled), make(DType::kFloat64, near(scaled, 0.02, 6)));
  }
}

TEST_P(Metrics, CountNonFiniteValuesAndLeaveThemOut) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    SCOPED_TRACE(name(dtype));
    auto golden = normal(9000, 7);
    auto actual = near(golden, 0.01, 8);
    golden[5] = NAN;
    actual[5] = NAN;
    golden[100] = inf;
    actual[100] = -inf;
    actual[4096] = inf;
    golden[8999] = -inf;
    actual[8999] = -inf;
    check(make(dtype, golden), make(dtype, actual));
    Request rows;
    rows.rows = true;
    check(make(dtype, golden, {90, 100}), make(dtype, actual, {90, 100}), rows);
    std::fill(golden.begin(), golden.end(), NAN);
    check(make(dtype, golden), make(dtype, actual));
  }
}

TEST_P(Metrics, FollowEveryDefinitionOfRelativeErrorThresholdsAndMasks) {
  auto golden = normal(6000, 9);
  for (size_t i = 0; i < golden.size(); i += 7) golden[i] = 0;
  auto actual = near(golden, 0.01, 10);
  for (size_t i = 0; i < golden.size(); i += 21) actual[i] = 1e-3;
  for (const RelativeError kind :
       {RelativeError::kMasked, RelativeError::kPlain, RelativeError::kDamped})
    for (const bool mask : {false, true})
      for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(static_cast<int>(kind)));
        Request request;
        request.relative = kind;
        request.mask_absolute = mask;
        request.thresholds = {0.00103, 0.0051, 0.0107,
                              0.53};  // hit by no quotient of two fp16 values
        request.threshold_count = 4;
        if (kind == RelativeError::kDamped) request.relative_epsilon = 1e-6;
        check(make(dtype, golden), make(dtype, actual), request);
      }
}

TEST_P(Metrics, FindTheWorstRowForShortAndLongRows) {
  for (const int64_t row : {1, 3, 64, 1000, 5000, 300000}) {
    const int64_t rows = row > 100000 ? 2 : std::max<int64_t>(1, 60000 / row);
    const auto golden = normal(static_cast<size_t>(rows * row), 11);
    const auto actual = near(golden, 0.05, 12);
    SCOPED_TRACE(row);
    Request request;
    request.rows = true;
    check(make(DType::kFloat32, golden, {rows, row}), make(DType::kFloat16, actual, {rows, row}),
          request);
  }
}

TEST_P(Metrics, KlIsRightForSmallAndLargeDifferences) {
  const auto golden = normal(40000, 13, 3);
  for (const double noise : {0.0, 1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.1, 3.0}) {
    SCOPED_TRACE(noise);
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64})
      check(make(dtype, golden), make(dtype, near(golden, noise, 14)));
  }
  // Far from zero, far apart, and dominated by one element.
  for (const double shift : {-1e4, -700.0, 900.0, 3e4}) {
    SCOPED_TRACE(shift);
    auto moved = golden;
    for (double& v : moved) v += shift;
    check(make(DType::kFloat32, moved), make(DType::kFloat32, near(moved, 1e-5, 15)));
    check(make(DType::kFloat32, golden), make(DType::kFloat32, moved));
  }
}

// Where nearly all that weighs differs by the same amount, the terms of KL cancel.
TEST_P(Metrics, KlIsRightWhereDifferencesAreTheSame) {
  for (const double scale : {0.1, 3.0, 20.0}) {
    for (const double offset : {1e-4, 0.01, 0.3, 2.0, -15.0}) {
      for (const double noise : {0.0, 1e-5, 1e-2}) {
        SCOPED_TRACE(::testing::Message() << scale << ' ' << offset << ' ' << noise);
        const auto golden = normal(6000, 21, scale);
        auto actual = near(golden, noise, 22);
        for (double& v : actual) v += offset;
        check(make(DType::kFloat32, golden), make(DType::kFloat32, actual));
        check(make(DType::kFloat16, golden), make(DType::kFloat16, actual));
        check(make(DType::kBFloat16, golden), make(DType::kFloat32, actual));
      }
    }
  }
}

// As in the hidden states of language models.
TEST_P(Metrics, KlIsRightWhereOneElementHasAllTheWeight) {
  for (const double outlier : {8.0, 15.0, 40.0, 95.3, 700.0, 40000.0}) {
    for (const double error : {1e-3, 0.25, 0.8, 30.0, -60.0}) {
      SCOPED_TRACE(::testing::Message() << outlier << ' ' << error);
      auto golden = normal(9000, 23);
      auto actual = near(golden, 0.004, 24);
      golden[7000] = outlier;
      actual[7000] = outlier + error;
      check(make(DType::kFloat32, golden), make(DType::kFloat32, actual));
      check(make(DType::kFloat32, golden), make(DType::kBFloat16, actual));
      golden[200] = 2 * outlier;  // in another block, before the other
      actual[200] = 2 * outlier - error;
      check(make(DType::kFloat16, golden), make(DType::kFloat16, actual));
    }
  }
}

// The bounds up to which the kernels for narrow values and small differences are used.
TEST_P(Metrics, KlIsRightOnBothSidesOfEveryBound) {
  const auto values = normal(9000, 25);
  for (const double largest : {0.5, 39.5, 40.5}) {
    for (const double error : {0.0155, 0.0157, 0.124, 0.126, 0.49, 0.51}) {
      SCOPED_TRACE(::testing::Message() << largest << ' ' << error);
      auto golden = values;
      for (double& v : golden) v = std::fmod(v * 37, 1.0) * largest;
      auto actual = golden;
      for (size_t i = 0; i < actual.size(); ++i)
        actual[i] += std::sin(static_cast<double>(i)) * error;
      for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
        check(make(dtype, golden), make(dtype, actual));
        check(make(dtype, golden), make(DType::kBFloat16, actual));
      }
    }
  }
}

// Σgm is had from the other sums as long as these tell it.
TEST_P(Metrics, CosineIsRightHoweverFarApartTheNormsAre) {
  const auto golden = normal(9000, 26);
  const auto other = normal(9000, 27);
  for (const double scale : {1.0, -1.0, 100.0, 1000.0, -1040.0, 1e4, 1e7, 1e-3, 1e-9, 1e15}) {
    SCOPED_TRACE(scale);
    auto like = near(golden, 0.01, 28);
    auto unlike = other;
    for (double& v : like) v *= scale;
    for (double& v : unlike) v *= scale;
    for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
      check(make(dtype, golden), make(dtype, like));
      check(make(dtype, golden), make(dtype, unlike));
      check(make(DType::kFloat16, golden), make(dtype, unlike));
    }
  }
}

TEST_P(Metrics, ExtremesAreRightWhereAllElementsHaveOneSign) {
  for (const double sign : {1.0, -1.0, 0.0, -0.0}) {
    SCOPED_TRACE(sign);
    auto golden = normal(9001, 29);
    for (double& v : golden) v = std::copysign(std::fabs(v) * std::fabs(sign) + 0.0, sign);
    auto actual = golden;
    actual[5000] *= 1.5;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32})
      check(make(dtype, golden), make(dtype, actual));
    golden[8000] = -sign;
    check(make(DType::kFloat16, golden), make(DType::kBFloat16, actual));
  }
}

// A relative error that is the same everywhere, and quotients that are next to each other.
TEST_P(Metrics, TheLargestRelativeErrorIsExactAmongEqualOnes) {
  auto golden = normal(20000, 30);
  for (double& v : golden) v = std::ldexp(1.0, static_cast<int>(v));
  auto actual = golden;
  for (double& v : actual) v *= 1.0078125;
  check(make(DType::kBFloat16, golden), make(DType::kBFloat16, actual));
  check(make(DType::kFloat16, golden), make(DType::kBFloat16, actual));
  golden[15000] = 255;
  actual[15000] = 257;  // just above 1/128
  check(make(DType::kFloat16, golden), make(DType::kFloat32, actual));
  check(make(DType::kFloat16, golden), make(DType::kFloat16, actual));
}

TEST_P(Metrics, ExactMaximaSurviveConstantErrors) {
  // Every block is a candidate for the largest error; the first element must be named.
  std::vector<double> golden(20000, 2.0);
  std::vector<double> actual(20000, 2.5);
  check(make(DType::kFloat16, golden), make(DType::kFloat16, actual));
  actual[12345] = 2.501953125;  // the next fp16
  check(make(DType::kFloat16, golden), make(DType::kFloat16, actual));
}

TEST_P(Metrics, IntegersBeyondDoublePrecisionAreComparedExactly) {
  Data golden = make(DType::kInt64, std::vector<double>(4));
  Data actual = golden;
  put<int64_t>(golden.bytes, 2, (int64_t{1} << 60));
  put<int64_t>(actual.bytes, 2, (int64_t{1} << 60) + 1);
  const auto got = compare(golden.view(), actual.view(), {});
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->identical);
  EXPECT_EQ(got->differing, 1u);
  EXPECT_EQ(got->max_absolute_error, 1.0);
  EXPECT_EQ(got->worst_index, 2u);
}

TEST_P(Metrics, StatisticsAgreeWithPlainLoops) {
  auto values = normal(9001, 16);
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(name(dtype));
    const Data data = make(dtype, values);
    const Statistics got = statistics(data.view());
    const Statistics want = reference_statistics(data.view());
    expect_same(got, want);
    expect_near(got.l1_norm, want.l1_norm, "l1_norm");
  }
  values[4000] = NAN;
  values[10] = -std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const Data data = make(dtype, values);
    const Statistics got = statistics(data.view());
    const Statistics want = reference_statistics(data.view());
    expect_same(got, want);
    expect_near(got.l1_norm, want.l1_norm, "l1_norm");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Metrics, ::testing::ValuesIn(simd_targets()),
                         [](const auto& target) { return target.param; });

TEST(MetricsEngine, ResultsDoNotDependOnTheThreadCount) {
  const auto golden = normal(1000003, 17);
  const auto actual = near(golden, 0.01, 18);
  const Data g = make(DType::kFloat32, golden);
  const Data m = make(DType::kFloat16, actual);
  Request request;
  request.rows = true;
  const auto one = compare(g.view(), m.view(), request);
  for (const size_t threads : {2u, 3u, 8u}) {
    request.threads = threads;
    const auto many = compare(g.view(), m.view(), request);
    EXPECT_EQ(one->cosine_similarity, many->cosine_similarity);
    EXPECT_EQ(one->mean_relative_error, many->mean_relative_error);
    EXPECT_EQ(one->mean_absolute_error, many->mean_absolute_error);
    EXPECT_EQ(one->kl_divergence, many->kl_divergence);
    EXPECT_EQ(one->relative_euclidean_distance, many->relative_euclidean_distance);
    EXPECT_EQ(one->golden.mean, many->golden.mean);
    EXPECT_EQ(one->worst_index, many->worst_index);
    EXPECT_EQ(one->row->kl_mean, many->row->kl_mean);
  }
}

TEST(MetricsEngine, WithholdsEveryMetricWhenAskedTo) {
  const Data golden = make(DType::kFloat32, {1, NAN, 3});
  const Data actual = make(DType::kFloat32, {1, 2, 3});
  Request request;
  request.non_finite = NonFinite::kWithhold;
  const auto got = compare(golden.view(), actual.view(), request);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->withheld);
  EXPECT_TRUE(std::isnan(got->cosine_similarity));
  EXPECT_EQ(got->golden.nan, 1u);
}

TEST(MetricsEngine, RefusesTensorsOfDifferentSize) {
  const Data golden = make(DType::kFloat32, {1, 2});
  const Data actual = make(DType::kFloat32, {1, 2, 3});
  EXPECT_FALSE(compare(golden.view(), actual.view(), {}));
}

TEST(MetricsEngine, ReadsFortranOrderAndStridedViewsInRowMajorOrder) {
  const auto values = normal(60 * 70, 19);
  Data rows = make(DType::kFloat32, values, {60, 70});
  std::vector<double> columns(values.size());
  for (size_t i = 0; i < 60; ++i)
    for (size_t j = 0; j < 70; ++j) columns[j * 60 + i] = values[i * 70 + j];
  Data fortran = make(DType::kFloat32, columns, {60, 70});
  fortran.strides = {1, 60};
  const auto got = compare(rows.view(), fortran.view(), {});
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->identical);
}

TEST(MetricsEngine, HistogramCountsEveryFiniteValueOnce) {
  const Data data =
      make(DType::kFloat32, {0, 0.1, 0.5, 0.9, 1, NAN, std::numeric_limits<double>::infinity()});
  const auto counts = histogram(data.view(), statistics(data.view()), 2);
  EXPECT_EQ(counts, (std::vector<size_t>{2, 3}));
}

}  // namespace
}  // namespace ait::metrics
